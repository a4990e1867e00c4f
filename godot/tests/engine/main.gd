extends Node
# Tests the extension in the engine: a server and two clients in separate processes, and invalid arguments.
#
#     -- server FILE          writes its port to a file
#     -- client NAME PORT     the client "first" closes itself; any other is disconnected by the server
#     -- errors               invalid arguments, and a server and a client in one process

const DEADLINE := 60_000

var peer := RakwirePeer.new()
var failures := 0
var names := {}
var finished := []
var welcomed := ""
var whispers := []
var positions := []
var echoes := []
var is_over := false

func _ready() -> void:
	Engine.max_fps = 200
	var arguments := OS.get_cmdline_user_args()
	match arguments[0]:
		"server": await serve(arguments[1])
		"client": await join(arguments[1], int(arguments[2]))
		"errors": await pass_wrong_arguments()
	if failures == 0:
		print("all passed")
	get_tree().quit(failures)

func check(is_so: bool, what: String) -> void:
	if is_so:
		print("ok: ", what)
	else:
		failures += 1
		printerr("FAILED: ", what)

func until(condition: Callable, what: String) -> void:
	var begin := Time.get_ticks_msec()
	while not condition.call():
		if Time.get_ticks_msec() - begin > DEADLINE:
			check(false, what)
			return
		await get_tree().process_frame
	check(true, what)

func serve(file: String) -> void:
	var left := []
	multiplayer.peer_disconnected.connect(func(id): left.append(id))
	check(peer.create_server_with(0, 4, {"password": "snow", "advertisement": "engine"}) == OK, "the server opens")
	multiplayer.multiplayer_peer = peer
	check(multiplayer.is_server() and multiplayer.get_unique_id() == 1, "the id of the server is 1")
	FileAccess.open(file, FileAccess.WRITE).store_string(str(peer.get_local_port()))

	await until(func(): return names.size() == 2, "both clients call the server")
	for id in names:
		check(id > 1 and id in multiplayer.get_peers(), "the client id %d is in the list of peers" % id)
		check(peer.get_peer_address(id) == "127.0.0.1" and peer.get_peer_port(id) > 0, "the client has an address and a port")
		check(peer.get_statistics(id)["messages_received"] > 0, "the client has statistics")
		check(not peer.get_peer_identity(id)["secure"], "the client is not secure")
	check(peer.get_statistics()["connections"] == 2, "the socket has two connections")
	await until(func(): return finished.size() == 2, "both clients have finished their calls")
	check(positions.size() > 0, "unreliable calls arrive")

	peer.refuse_new_connections = true
	check(peer.refuse_new_connections, "the property refuse_new_connections is set")
	stop.rpc()
	await until(func(): return left.size() == 1, "the first client leaves")
	check(names[left[0]] == "first", "the client that left is the first one")
	for id in multiplayer.get_peers():
		peer.disconnect_peer(id)
	await until(func(): return left.size() == 2, "the second client is disconnected")

func join(own_name: String, port: int) -> void:
	var pongs := []
	peer.pong_received.connect(func(_address, from, seconds, data): pongs.append([from, seconds, data.get_string_from_utf8()]))
	check(peer.ping("127.0.0.1", port) == OK, "a ping needs no connection")
	await until(func(): peer.poll(); return pongs.size() == 1, "the server answers a ping")
	check(pongs[0][0] == port and pongs[0][1] >= 0.0 and pongs[0][2] == "engine", "the pong has the advertisement")

	var failed := []
	multiplayer.connection_failed.connect(func(): failed.append(peer.get_close_reason()))
	check(peer.create_client_with("127.0.0.1", port, {"password": "rain"}) == OK, "the attempt with a wrong password begins")
	multiplayer.multiplayer_peer = peer
	await until(func(): return failed.size() == 1, "the attempt with a wrong password fails")
	check("password" in failed[0], "the reason names the password")

	var others := []
	var lost := []
	multiplayer.peer_connected.connect(func(id): if id != 1: others.append(id))
	multiplayer.server_disconnected.connect(func(): lost.append(true))
	check(peer.create_client_with("127.0.0.1", port, {"password": "snow"}) == OK, "the attempt with the password begins")
	multiplayer.multiplayer_peer = peer
	await until(func(): return peer.get_connection_status() == MultiplayerPeer.CONNECTION_CONNECTED, "the client is connected")
	check(multiplayer.get_unique_id() > 1 and not multiplayer.is_server(), "the client has an id")

	hello.rpc_id(1, own_name)
	await until(func(): return welcomed == own_name, "the server calls back")
	await until(func(): return others.size() == 1, "the server announces the other client")
	whisper.rpc_id(others[0], "I am " + own_name)
	await until(func(): return whispers.size() == 1, "a call from the other client arrives")
	var other_name := "second" if own_name == "first" else "first"
	check(whispers[0] == [others[0], "I am " + other_name], "the call has the id and text of the other client")

	var data := PackedByteArray()
	data.resize(200_000)
	data.fill(7)
	for number in 20:
		move.rpc_id(1, number)
	echo.rpc_id(1, data)
	await until(func(): return echoes.size() == 1, "a large call comes back")
	check(echoes[0] == data, "the large call comes back unchanged")

	finish.rpc_id(1)
	await until(func(): return is_over, "the server ends the test")
	if own_name == "first":
		peer.close()
		check(peer.get_connection_status() == MultiplayerPeer.CONNECTION_DISCONNECTED, "a closed client is disconnected")
	else:
		await until(func(): return lost.size() == 1, "the client is disconnected")
		check(peer.get_close_reason() != "", "the disconnected client has a close reason")

@rpc("any_peer", "reliable")
func hello(own_name: String) -> void:
	names[multiplayer.get_remote_sender_id()] = own_name
	welcome.rpc_id(multiplayer.get_remote_sender_id(), own_name)

@rpc("authority", "reliable")
func welcome(own_name: String) -> void:
	welcomed = own_name

@rpc("any_peer", "reliable")
func whisper(text: String) -> void:
	whispers.append([multiplayer.get_remote_sender_id(), text])

@rpc("any_peer", "unreliable_ordered", "call_remote", 3)
func move(number: int) -> void:
	positions.append(number)

@rpc("any_peer", "reliable", "call_remote", 7)
func echo(data: PackedByteArray) -> void:
	if multiplayer.is_server():
		echo.rpc_id(multiplayer.get_remote_sender_id(), data)
	else:
		echoes.append(data)

@rpc("any_peer", "reliable")
func finish() -> void:
	finished.append(multiplayer.get_remote_sender_id())

@rpc("authority", "reliable")
func stop() -> void:
	is_over = true

func pass_wrong_arguments() -> void:
	check(peer.create_server(-1) == ERR_INVALID_PARAMETER, "a negative port is refused")
	check(peer.create_server(0, 0) == ERR_INVALID_PARAMETER, "a server for 0 clients is refused")
	check(peer.create_server_with(0, 4, {"nonsense": 1}) == ERR_INVALID_PARAMETER, "an unknown option is refused")
	check(peer.create_server_with(0, 4, {7: 1}) == ERR_INVALID_PARAMETER, "an option whose name is a number is refused")
	check(peer.create_server_with(0, 4, {"timeout": "5"}) == ERR_INVALID_PARAMETER, "an option with a wrong type is refused")
	check(peer.create_server_with(0, 4, {"password": null}) == ERR_INVALID_PARAMETER, "null as a password is refused")
	check(peer.create_server_with(0, 4, {"key": PackedByteArray([1])}) == ERR_INVALID_PARAMETER, "a key of 1 byte is refused")
	check(peer.create_server_with(0, 4, {"key_file": "user://missing"}) == ERR_FILE_CANT_READ, "a missing key file is refused")
	check(peer.create_server_with(0, 4, {"bind_address": "192.0.2.1"}) == ERR_CANT_CREATE, "an address of another machine is refused")
	check(peer.create_client("not a name", 1) == ERR_CANT_RESOLVE, "an invalid host name is refused")
	check("not a name" in peer.get_close_reason(), "the refused attempt has a close reason")
	var any := {"server_key": RakwirePeer.generate_key(), "trust_any_key": true}
	check(peer.create_client_with("127.0.0.1", 1, any) == ERR_INVALID_PARAMETER, "server_key with trust_any_key is refused")
	check("trust_any_key" in peer.get_close_reason(), "the close reason is that of the last attempt")
	check(peer.create_server_with(0, 4, {"require_security": true}) == ERR_INVALID_PARAMETER, "require_security without a key is refused")
	check(peer.create_client_with("127.0.0.1", 1, {"connect_timeout": 0}) == ERR_INVALID_PARAMETER, "a connect timeout of 0 is refused")
	check(peer.create_client_with("127.0.0.1", 1, {"token": "x"}) == ERR_INVALID_PARAMETER, "a token without an identity is refused")
	check(peer.put_packet(PackedByteArray([1])) == ERR_UNCONFIGURED, "a packet without a connection is refused")
	check(peer.ban("192.0.2.1") == ERR_UNCONFIGURED, "a ban without a server is refused")
	check(peer.get_packet().is_empty() and peer.get_available_packet_count() == 0, "a closed peer has no packets")
	check(peer.get_connection_status() == MultiplayerPeer.CONNECTION_DISCONNECTED, "a closed peer is disconnected")
	check(peer.get_statistics().is_empty() and peer.get_peer_address(1) == "" and peer.get_local_port() == 0, "a closed peer has no statistics, address or port")
	check(RakwirePeer.public_key(PackedByteArray([1])).is_empty(), "a key that is too short has no public key")
	peer.disconnect_peer(1)
	peer.poll()
	peer.close()
	await close_in_a_handler()
	await talk()

func close_in_a_handler() -> void:
	var servers := [RakwirePeer.new(), RakwirePeer.new()]
	var pinger := RakwirePeer.new()
	var pongs := []
	pinger.pong_received.connect(func(_address, port, _seconds, _data): pongs.append(port); pinger.close())
	for server in servers:
		check(server.create_server(0) == OK and pinger.ping("127.0.0.1", server.get_local_port()) == OK, "a server is pinged")
	for _i in 20:
		for server in servers:
			server.poll()
		OS.delay_msec(10)
	# Both pongs have arrived.
	pinger.poll()
	check(pongs.size() == 1, "a session that a handler has closed emits no further signal")
	for server in servers:
		server.close()

func talk() -> void:
	var key := RakwirePeer.generate_key()
	var identity := RakwirePeer.generate_key()
	var server := RakwirePeer.new()
	check(server.create_server_with(0, 4, {"key": key}) == OK, "a secure server opens")
	check(server.create_server(0) == ERR_ALREADY_IN_USE, "an open server cannot be opened again")
	var options := {"server_key": RakwirePeer.public_key(key), "identity_key": identity}
	check(peer.create_client_with("127.0.0.1", server.get_local_port(), options) == OK, "a secure attempt begins")
	var both := func(): server.poll(); peer.poll(); return peer.get_connection_status() == MultiplayerPeer.CONNECTION_CONNECTED
	await until(both, "the connection is open")
	var id := peer.get_unique_id()
	check(server.get_peer_identity(id)["key"] == RakwirePeer.public_key(identity), "the server knows the client by its key")
	check(peer.get_peer_identity(1)["secure"], "the connection is secure")

	for mode in [MultiplayerPeer.TRANSFER_MODE_UNRELIABLE, MultiplayerPeer.TRANSFER_MODE_UNRELIABLE_ORDERED, MultiplayerPeer.TRANSFER_MODE_RELIABLE]:
		peer.transfer_mode = mode
		peer.transfer_channel = 5
		peer.set_target_peer(1)
		check(peer.put_packet(PackedByteArray([1, 2, 3])) == OK, "a packet is sent")
		await until(func(): server.poll(); peer.poll(); return server.get_available_packet_count() == 1, "the packet arrives")
		check(server.get_packet_peer() == id and server.get_packet_mode() == mode and server.get_packet_channel() == 5, "the packet has its sender, mode and channel")
		check(server.get_packet() == PackedByteArray([1, 2, 3]), "the packet has its bytes")

	peer.transfer_channel = 16
	check(peer.put_packet(PackedByteArray([1])) == ERR_INVALID_PARAMETER, "channel 16 is refused")
	peer.transfer_channel = -2147483648
	check(peer.put_packet(PackedByteArray([1])) == ERR_INVALID_PARAMETER, "a negative channel is refused")
	peer.transfer_channel = 0
	peer.set_target_peer(99)
	check(peer.put_packet(PackedByteArray([1])) == ERR_INVALID_PARAMETER, "an unknown target peer is refused")
	peer.set_target_peer(1)
	var large := PackedByteArray()
	large.resize(64_000_000)
	check(peer.put_packet(large) == ERR_INVALID_PARAMETER, "a packet above the maximum length is refused")
	server.disconnect_peer(99)
	check(server.ban("192.0.2.7", -1) == ERR_INVALID_PARAMETER and server.ban("192.0.2.7", NAN) == ERR_INVALID_PARAMETER, "a ban with a negative or undefined duration is refused")
	check(server.ban("nonsense") == ERR_INVALID_PARAMETER, "a ban of an invalid address is refused")
	check(server.ban("192.0.2.*", 60) == OK and server.is_banned("192.0.2.7") and server.unban("192.0.2.*"), "an address can be banned and unbanned")
	var data := PackedByteArray()
	data.resize(400)
	check(server.set_advertisement(data) == ERR_INVALID_PARAMETER, "an advertisement has at most 399 bytes")
	check(peer.set_advertisement(PackedByteArray()) == ERR_UNCONFIGURED, "a client cannot set an advertisement")
	server.close()
	await until(func(): peer.poll(); return peer.get_connection_status() == MultiplayerPeer.CONNECTION_DISCONNECTED, "the client is disconnected")
	check(server.put_packet(PackedByteArray([1])) == ERR_UNCONFIGURED, "a closed server sends nothing")
