//! The unsafe ground floor of millpond.
