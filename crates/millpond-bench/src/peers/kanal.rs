//! `kanal`.

super::channel::cloned_channel! {
    /// `kanal::bounded` and `unbounded`.
    Kanal, kanal, "kanal"
}
