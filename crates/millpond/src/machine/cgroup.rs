//! The limits of this process's control groups, version 2 and version 1.
//!
//! # How a limit is found
//! `/proc/self/cgroup` names our group; `/proc/self/mountinfo` has the mount point of its hierarchy and the
//! group that is shown there. A limit applies to everything below it, so the limits of all groups from ours
//! up to the mount point are read, and the smallest wins. Both versions may be mounted at once (then a
//! controller is in one of them), so both are read.
//!
//! # What is not found
//! Groups above the mount point. In a container the host's groups are hidden; their limits apply, but
//! cannot be read from inside.

use super::source::Source;

/// The smallest limits of all groups; `None` is "no limit".
#[derive(Debug, Default, PartialEq)]
pub(super) struct Limits {
    pub(super) cpu_quota: Option<f64>,
    pub(super) memory: Option<u64>,
}

impl Limits {
    pub(super) fn read(source: &Source<'_>) -> Self {
        let Some(groups) = source.text("proc/self/cgroup") else {
            return Self::default();
        };
        let mounts = source.text("proc/self/mountinfo").unwrap_or_default();
        let mounts: Vec<Mount> = mounts.lines().filter_map(mount).collect();
        let mut limits = Self::default();
        for group in groups.lines().filter_map(group) {
            for mount in mounts.iter().filter(|mount| mount.shows(&group)) {
                for folder in chain(mount, &group) {
                    limits.tighten(source, &group, &folder);
                }
            }
        }
        limits
    }

    fn tighten(&mut self, source: &Source<'_>, group: &Group<'_>, folder: &str) {
        let line = |name: &str| source.line(&format!("{folder}/{name}"));
        let (quota, memory) = if group.is_v2() {
            (
                line("cpu.max").and_then(|max| quota_v2(&max)),
                line("memory.max"),
            )
        } else {
            let quota = line("cpu.cfs_quota_us").zip(line("cpu.cfs_period_us"));
            (
                quota.and_then(|(q, p)| ratio(&q, &p)),
                line("memory.limit_in_bytes"),
            )
        };
        self.cpu_quota = smaller(self.cpu_quota, quota);
        self.memory = smaller(self.memory, memory.and_then(|text| memory_limit(&text)));
    }
}

fn smaller<T: PartialOrd>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b < a { b } else { a }),
        (a, b) => a.or(b),
    }
}

/// One line of `/proc/self/cgroup`: `4:cpu,cpuacct:/path`, or `0::/path` for version 2.
#[derive(Debug)]
struct Group<'t> {
    controllers: &'t str,
    path: &'t str,
}

impl Group<'_> {
    fn is_v2(&self) -> bool {
        self.controllers.is_empty()
    }
}

fn group(line: &str) -> Option<Group<'_>> {
    let mut fields = line.splitn(3, ':');
    let _hierarchy = fields.next()?;
    let (controllers, path) = (fields.next()?, fields.next()?);
    path.starts_with('/').then_some(Group { controllers, path })
}

/// One line of `/proc/self/mountinfo`, of a hierarchy of control groups.
#[derive(Debug)]
struct Mount {
    /// The group shown at the mount point.
    root: String,
    point: String,
    /// `None` for version 2, which has all controllers in one hierarchy.
    controllers: Option<String>,
}

impl Mount {
    fn shows(&self, group: &Group<'_>) -> bool {
        match &self.controllers {
            None => group.is_v2(),
            Some(options) => {
                !group.is_v2()
                    && group.controllers.split(',').any(|wanted| {
                        matches!(wanted, "cpu" | "memory")
                            && options.split(',').any(|option| option == wanted)
                    })
            }
        }
    }
}

/// `36 35 98:0 /root /point rw,noatime optional.. - type device options`
fn mount(line: &str) -> Option<Mount> {
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split(' ').skip(3);
    let (root, point) = (unescape(left.next()?), unescape(left.next()?));
    let mut right = right.split(' ');
    let kind = right.next()?;
    let options = right.nth(1)?;
    let controllers = match kind {
        "cgroup2" => None,
        "cgroup" => Some(options.to_owned()),
        _ => return None,
    };
    Some(Mount {
        root,
        point,
        controllers,
    })
}

/// The kernel writes space, tab, newline and backslash in a path as three octal digits.
fn unescape(field: &str) -> String {
    [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ]
    .iter()
    .fold(field.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// The folders of our group and of all groups above it that the mount shows, ours first.
fn chain(mount: &Mount, group: &Group<'_>) -> Vec<String> {
    let point = mount.point.trim_end_matches('/');
    let root = mount.root.trim_end_matches('/');
    let is_name = |part: &&str| !part.is_empty() && *part != ".";
    let climbs = |path: &str| path.split('/').any(|part| part == "..");
    // A root of nothing but `/..` is a group above our namespace: an ancestor of unknown depth.
    if climbs(root) {
        let is_ancestor = root.split('/').filter(is_name).all(|part| part == "..");
        return if is_ancestor {
            vec![point.to_owned()]
        } else {
            Vec::new()
        };
    }
    let below = match group.path.strip_prefix(root) {
        Some(below) if (below.is_empty() || below.starts_with('/')) && !climbs(below) => below,
        // The mount shows a branch of the tree that does not contain our group.
        _ => return Vec::new(),
    };
    let mut folder = point.to_owned();
    let mut folders = vec![folder.clone()];
    for name in below.split('/').filter(is_name) {
        folder = format!("{folder}/{name}");
        folders.push(folder.clone());
    }
    folders.reverse();
    folders
}

/// `max 100000` is no limit, `50000 100000` is half a CPU.
fn quota_v2(text: &str) -> Option<f64> {
    let (quota, period) = text.split_once(' ')?;
    ratio(quota, period)
}

/// Version 1 says "no limit" with -1, version 2 with `max`; neither parses as a number here.
fn ratio(quota: &str, period: &str) -> Option<f64> {
    let (quota, period) = (
        quota.trim().parse::<u64>().ok()?,
        period.trim().parse::<u64>().ok()?,
    );
    (quota > 0 && period > 0).then(|| quota as f64 / period as f64)
}

/// Version 1 says "no limit" with the largest whole number of pages, which depends on the page
/// size; no machine has 4 EiB, so anything from there on is no limit.
fn memory_limit(text: &str) -> Option<u64> {
    const NO_LIMIT: u64 = 1 << 62;
    text.trim().parse().ok().filter(|&bytes| bytes < NO_LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders(root: &str, path: &str) -> Vec<String> {
        let mount = Mount {
            root: root.into(),
            point: "/cg".into(),
            controllers: None,
        };
        chain(
            &mount,
            &Group {
                controllers: "",
                path,
            },
        )
    }

    #[test]
    fn the_chain_goes_from_our_group_up_to_the_mount_point() {
        assert_eq!(folders("/", "/a/b"), ["/cg/a/b", "/cg/a", "/cg"]);
        assert_eq!(folders("/", "/"), ["/cg"]);
    }

    #[test]
    fn the_mounted_group_is_cut_off_our_path() {
        assert_eq!(folders("/docker/7", "/docker/7"), ["/cg"]);
        assert_eq!(folders("/docker/7", "/docker/7/app"), ["/cg/app", "/cg"]);
    }

    #[test]
    fn a_mount_of_another_branch_is_not_read() {
        assert!(folders("/docker/7", "/docker/77").is_empty());
        assert!(folders("/other", "/").is_empty());
        assert!(folders("/../other", "/").is_empty());
    }

    #[test]
    fn a_path_that_climbs_never_leaves_the_mount() {
        assert!(folders("/", "/../../etc").is_empty());
        assert_eq!(folders("/../..", "/app"), ["/cg"]);
    }

    #[test]
    fn a_mount_point_with_a_space_is_found() {
        let line = r"41 31 0:38 / /my\040groups rw shared:3 master:1 - cgroup2 cgroup2 rw";
        assert_eq!(mount(line).unwrap().point, "/my groups");
    }

    #[test]
    fn quotas_are_fractions_of_a_cpu() {
        assert_eq!(quota_v2("50000 100000"), Some(0.5));
        assert_eq!(quota_v2("max 100000"), None);
        assert_eq!(quota_v2("50000"), None);
        assert_eq!(quota_v2("50000 0"), None);
        assert_eq!(ratio("-1", "100000"), None);
        assert_eq!(ratio("250000", "100000"), Some(2.5));
    }

    #[test]
    fn the_largest_page_count_is_no_memory_limit() {
        assert_eq!(memory_limit("9223372036854771712"), None);
        assert_eq!(memory_limit("max"), None);
        assert_eq!(memory_limit("1048576"), Some(1 << 20));
    }
}
