extends Node

func _ready() -> void:
	var peer := RakwirePeer.new()
	if "--server" in OS.get_cmdline_user_args():
		peer.create_server(19132)
	else:
		peer.create_client("127.0.0.1", 19132)
		multiplayer.connected_to_server.connect(func(): say.rpc_id(1, "hello"))
		multiplayer.connection_failed.connect(func(): print(peer.get_close_reason()))
	multiplayer.multiplayer_peer = peer

@rpc("any_peer", "reliable")
func say(text: String) -> void:
	var sender := multiplayer.get_remote_sender_id()
	print("%d says: %s" % [sender, text])
	if multiplayer.is_server():
		say.rpc_id(sender, "welcome")
