//! From the calendar to real time, through the days on which clocks are changed.
//!
//! Between two changes real time and the calendar run side by side, a fixed offset apart. The search goes
//! from stretch to stretch, and decides at each change what becomes of its hour:
//!
//! ```text
//!   spring   01:59:59 | 03:00      the gap: 02:00 to 03:00 is on no clock
//!   autumn   02:59:59 | 02:00      the repeat: 02:00 to 03:00 comes twice
//! ```
//!
//! # Invariants
//!
//! - **ZONE-1** An expression that has times in every hour around a change (the hour before it, those of it, the
//!   hour after it) goes by intervals there. It does not make up for a gap and runs in both halves of a repeat, so its
//!   runs stay as far apart as ever.
//! - **ZONE-2** Every other expression goes by the time of day. What a gap swallows runs when the gap ends, once,
//!   however much it was; in a repeat the first half counts.
//! - **ZONE-3** A day that a gap swallows whole has no runs. (Samoa had no 30 December 2011.)
//!
//! ZONE-1 is asked at every change and of the hours alone, not of how the expression is spelled: `0 0-23 * * *`
//! is `0 * * * *`. `croner` takes whatever is not a single time of day for an interval; its `30 2,14 * * *`
//! is lost in spring and doubled in autumn.

use super::calendar::Calendar;
use jiff::civil::{DateTime, Time};
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};

/// Clocks are changed: what was `before` later than UTC is `after` later than it.
#[derive(Clone, Copy, Debug)]
struct Change {
    at: Timestamp,
    before: Offset,
    after: Offset,
}

impl Change {
    /// The first moment that the old clock does not show any more, on the old clock.
    fn on_old_clock(self) -> DateTime {
        self.before.to_datetime(self.at)
    }

    /// The same moment on the new clock.
    fn on_new_clock(self) -> DateTime {
        self.after.to_datetime(self.at)
    }

    /// ZONE-1
    fn is_passed_through_by(self, calendar: &Calendar) -> bool {
        let (begin, end) = (
            self.on_old_clock().min(self.on_new_clock()),
            self.on_old_clock().max(self.on_new_clock()),
        );
        calendar.has_every_hour(begin.saturating_sub(SECOND), end)
    }
}

const SECOND: SignedDuration = SignedDuration::from_secs(1);

/// The first moment strictly after `time` at which `calendar` has a run in this zone.
pub(super) fn next_after(
    calendar: &Calendar,
    zone: &TimeZone,
    time: Timestamp,
) -> Option<Timestamp> {
    let mut offset = zone.to_offset(time);
    let mut from = whole_seconds(offset.to_datetime(time))
        .checked_add(SECOND)
        .ok()?;
    if let Some(last) = change_until(zone, time) {
        // ZONE-2: perhaps this is the second half of a repeat.
        if last.on_old_clock() > from && !last.is_passed_through_by(calendar) {
            from = last.on_old_clock();
        }
    }
    let mut changes = changes_after(zone, time, offset);
    loop {
        let found = calendar.first_from(from)?;
        let Some(change) = changes
            .next()
            .filter(|change| found >= change.on_old_clock())
        else {
            return offset.to_timestamp(found).ok();
        };
        let goes_on = change.is_passed_through_by(calendar);
        if found < change.on_new_clock() && !goes_on && has_lost_time(calendar, found, change) {
            return Some(change.at); // ZONE-2
        }
        offset = change.after;
        from = if goes_on {
            change.on_new_clock() // ZONE-1
        } else {
            found.max(change.on_new_clock())
        };
    }
}

/// Whether the gap has swallowed a time on a day that exists, `found` or a later one (ZONE-3).
fn has_lost_time(calendar: &Calendar, found: DateTime, gap: Change) -> bool {
    let mut lost = Some(found).filter(|time| *time < gap.on_new_clock());
    while let Some(time) = lost {
        let midnight = time.date().to_datetime(Time::midnight());
        let Ok(next_midnight) = midnight.checked_add(SignedDuration::from_hours(24)) else {
            return true;
        };
        if midnight < gap.on_old_clock() || next_midnight > gap.on_new_clock() {
            return true;
        }
        lost = calendar
            .first_from(next_midnight)
            .filter(|time| *time < gap.on_new_clock());
    }
    false
}

fn whole_seconds(time: DateTime) -> DateTime {
    time.with().subsec_nanosecond(0).build().unwrap_or(time)
}

/// The last change that is not after `time`.
fn change_until(zone: &TimeZone, time: Timestamp) -> Option<Change> {
    let tick = SignedDuration::from_nanos(1);
    let at = zone
        .preceding(time.saturating_add(tick).ok()?)
        .next()?
        .timestamp();
    Some(Change {
        at,
        before: zone.to_offset(at.checked_sub(tick).ok()?),
        after: zone.to_offset(at),
    })
}

/// The changes after `time`, when the offset is this.
fn changes_after(zone: &TimeZone, time: Timestamp, offset: Offset) -> impl Iterator<Item = Change> {
    zone.following(time).scan(offset, |before, transition| {
        let after = transition.offset();
        let change = Change {
            at: transition.timestamp(),
            before: std::mem::replace(before, after),
            after,
        };
        Some(change)
    })
}
