//! The page.
use crate::record::Record;
/// Its name.
pub const FILE: &str = "index.html";
/// The page.
pub fn html(record: &Record) -> String {
    record.notes.join("")
}
