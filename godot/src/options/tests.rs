//! Tests single options and combinations of options.

use super::*;

fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

fn refusal(result: Result<(), Error>) -> String {
    result.expect_err("an error").to_string()
}

#[test]
fn server_options_are_passed_to_the_endpoint() {
    let mut settings = ServerSettings::default();
    settings.set("max_per_address", &Value::Whole(4)).expect("an option");
    settings.set("timeout", &Value::Number(2.5)).expect("an option");
    settings.set("simulate", &text("loss=5%,latency=50ms")).expect("an option");
    settings.set("key", &Value::Bytes(vec![7; 32])).expect("an option");
    let mut options = settings.options(9).expect("options");
    assert_eq!(options.config.max_incoming, 9);
    assert_eq!(options.config.max_per_address, Some(4));
    assert_eq!(options.config.timeout, Duration::from_millis(2_500));
    assert!(options.simulate.is_some());
    let identity = options.secure().expect("entropy").server.as_ref().expect("a key");
    assert!(identity.requires_security);
}

#[test]
fn errors_of_invalid_options_state_the_expected_values() {
    let mut server = ServerSettings::default();
    assert_eq!(
        refusal(server.set("timeout", &text("5"))),
        "the option \"timeout\": it must be a number of seconds, not a String"
    );
    assert!(refusal(server.set("timeout", &Value::Number(f64::NAN))).contains("0 to 86400 seconds, not NaN"));
    assert!(refusal(server.set("timeout", &Value::Whole(-1))).contains("0 to 86400 seconds, not -1"));
    assert!(refusal(server.set("max_per_address", &Value::Whole(0))).contains("1 to 65534, not 0"));
    assert!(refusal(server.set("key", &Value::Bytes(vec![1; 31]))).contains("a key has 32 bytes, not 31"));
    assert!(refusal(server.set("password", &Value::Bytes(vec![1; 256]))).contains("at most 255 bytes"));
    assert!(refusal(server.set("simulate", &text("loss=x"))).contains("\"simulate\""));
    assert!(refusal(server.set("key_file", &text("/nowhere"))).contains("/nowhere"));
    assert!(
        refusal(server.set("server_key", &Value::Bytes(vec![1; 32])))
            .contains("no such option; the options are bind_address")
    );
    let mut client = ClientSettings::default();
    assert!(refusal(client.set("trust_any_key", &Value::Whole(1))).contains("a bool, not an int"));
    assert!(
        refusal(client.set("token", &Value::Other("an Array".to_owned()))).contains("a String, not an Array")
    );
    assert!(refusal(client.set("max_per_address", &Value::Whole(1))).contains("no such option"));
}

fn server(options: &[(&str, Value)]) -> Result<Options, Error> {
    let mut settings = ServerSettings::default();
    options.iter().for_each(|(name, value)| settings.set(name, value).expect("an option"));
    settings.options(1)
}

fn client(options: &[(&str, Value)]) -> Result<Options, Error> {
    let mut settings = ClientSettings::default();
    options.iter().for_each(|(name, value)| settings.set(name, value).expect("an option"));
    settings.options()
}

fn reason(result: Result<Options, Error>) -> String {
    result.map(|_| ()).expect_err("an error").to_string()
}

fn key() -> Value {
    Value::Bytes(vec![1; 32])
}

#[test]
fn options_with_missing_dependencies_are_refused() {
    assert!(reason(server(&[("token_key", key())])).contains("\"key_file\""));
    let required = reason(server(&[("require_security", Value::Flag(true))]));
    assert!(required.starts_with("the option \"require_security\"") && required.contains("\"key_file\""));
    assert!(reason(client(&[("token", text("rakwire"))])).contains("\"identity_key\""));
    assert!(reason(client(&[("identity_key", key())])).contains("\"server_key\""));
}

#[test]
fn conflicting_security_options_are_refused() {
    let any = || ("trust_any_key", Value::Flag(true));
    let refused = reason(client(&[("server_key", key()), any()]));
    assert!(refused.contains("\"server_key\"") && refused.contains("\"trust_any_key\""), "{refused}");
    let refused = reason(client(&[any(), ("server_key", key())]));
    assert!(refused.contains("\"server_key\"") && refused.contains("\"trust_any_key\""), "{refused}");

    let token = || [("token", text("rakwire")), ("identity_key", key())];
    let with = |name, value| client(&[token().as_slice(), &[(name, value)]].concat());
    assert!(reason(with("server_key", key())).contains("leave \"server_key\" out"));
    assert!(reason(with("trust_any_key", Value::Flag(true))).contains("leave \"trust_any_key\" out"));
    let password = "the option \"password\": a connect token replaces the password; leave \"password\" out";
    assert_eq!(reason(with("password", text("snow"))), password);

    let tokens = || [("key", key()), ("token_key", key())];
    let with = |name, value| server(&[tokens().as_slice(), &[(name, value)]].concat());
    assert_eq!(reason(with("password", text("snow"))), password);
    let refused = reason(with("require_security", Value::Flag(false)));
    assert!(refused.contains("\"require_security\"") && refused.contains("\"token_key\""), "{refused}");
}

#[test]
fn compatible_options_are_accepted() {
    let trusts = [("server_key", key()), ("trust_any_key", Value::Flag(false)), ("password", text("snow"))];
    client(&trusts).expect("options");
    client(&[("trust_any_key", Value::Flag(true)), ("identity_key", key())]).expect("options");
    client(&[("token", text("rakwire")), ("identity_key", key()), ("password", text(""))]).expect("options");
    server(&[("key", key()), ("token_key", key()), ("require_security", Value::Flag(true))])
        .expect("options");
    server(&[("require_security", Value::Flag(false)), ("password", text("snow"))]).expect("options");
    let mut options = server(&[("key", key()), ("require_security", Value::Flag(false))]).expect("options");
    let identity = options.secure().expect("entropy").server.as_ref().expect("a key");
    assert!(!identity.requires_security);
}

#[test]
fn timeouts_of_zero_are_refused() {
    for zero in [Value::Whole(0), Value::Number(0.0)] {
        let mut server = ServerSettings::default();
        let mut client = ClientSettings::default();
        assert!(refusal(server.set("timeout", &zero)).contains("it must be more than 0"));
        assert!(refusal(client.set("timeout", &zero)).contains("it must be more than 0"));
        assert!(refusal(client.set("connect_timeout", &zero)).contains("it must be more than 0"));
        server.set("close_wait", &zero).expect("closing need not wait");
    }
}
