//! The modules loaded into this process, with their unwind tables: the program, its shared libraries and
//! the vDSO, the kernel's code for reading the clock.
//!
//! The tables are read from the files, one section each. A library whose file has been replaced since
//! it was loaded is left out, because the tables would belong to another version; its frames are then
//! unwound by their frame pointers, if they have any. The program itself is opened through
//! `/proc/self/exe`, which is the right file even if its path has been replaced.

use framehop::{ExplicitModuleSectionInfo, Module};
use object::elf::PF_X;
use object::read::elf::{ElfFile64, FileHeader};
use object::{Endianness, Object, ObjectSection, ObjectSegment, ReadCache, ReadRef, SegmentFlags};
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

/// All loaded modules that have unwind tables. A module that cannot be read is left out.
pub(super) fn loaded() -> Vec<Module<Vec<u8>>> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let program = fs::read_link("/proc/self/exe").ok();
    executable(&maps)
        .into_iter()
        .filter_map(|mapping| match mapping.path.as_str() {
            "[vdso]" => from_memory(&mapping),
            path if program
                .as_deref()
                .is_some_and(|exe| exe.as_os_str() == path) =>
            {
                from_file(&mapping, "/proc/self/exe".into())
            }
            path if path.starts_with('/') => from_file(&mapping, path.into()),
            _ => None,
        })
        .collect()
}

/// An executable mapping.
#[derive(Debug, PartialEq, Eq)]
struct Mapping {
    range: Range<u64>,
    /// Its offset in the file.
    offset: u64,
    inode: u64,
    path: String,
}

/// The executable lines of `/proc/self/maps`: `start-end perms offset device inode path`.
fn executable(maps: &str) -> Vec<Mapping> {
    maps.lines().filter_map(executable_line).collect()
}

fn executable_line(line: &str) -> Option<Mapping> {
    let mut rest = line;
    let mut next = || {
        let (word, tail) = rest.trim_start().split_once(' ')?;
        rest = tail;
        Some(word)
    };
    let (start, end) = next()?.split_once('-')?;
    let is_code = next()?.contains('x');
    let offset = next()?;
    let _device = next()?;
    let inode = next()?;
    let hex = |text| u64::from_str_radix(text, 16).ok();
    is_code.then_some(Mapping {
        range: hex(start)?..hex(end)?,
        offset: hex(offset)?,
        inode: inode.parse().ok()?,
        path: rest.trim_start().to_owned(),
    })
}

fn from_file(mapping: &Mapping, path: PathBuf) -> Option<Module<Vec<u8>>> {
    let file = File::open(path).ok()?;
    if file.metadata().ok()?.ino() != mapping.inode {
        return None;
    }
    let cache = ReadCache::new(file);
    module(mapping, &cache)
}

fn from_memory(mapping: &Mapping) -> Option<Module<Vec<u8>>> {
    let length = usize::try_from(mapping.range.end - mapping.range.start).ok()?;
    let mut bytes = vec![0; length];
    let memory = File::open("/proc/self/mem").ok()?;
    memory.read_exact_at(&mut bytes, mapping.range.start).ok()?;
    module(mapping, bytes.as_slice())
}

fn module<'data>(mapping: &Mapping, data: impl ReadRef<'data>) -> Option<Module<Vec<u8>>> {
    let elf = ElfFile64::<Endianness, _>::parse(data).ok()?;
    let sections = |name: &str| {
        let section = elf.section_by_name(name)?;
        let range = section.address()..section.address().checked_add(section.size())?;
        Some((range, section))
    };
    let bytes = |name: &str| {
        let (_, section) = sections(name)?;
        Some(section.data().ok()?.to_vec())
    };
    let range = |name: &str| sections(name).map(|(range, _)| range);
    Some(Module::new(
        mapping.path.clone(),
        mapping.range.clone(),
        load_bias(mapping, &elf)?,
        ExplicitModuleSectionInfo {
            base_svma: 0,
            text_svma: range(".text"),
            got_svma: range(".got"),
            eh_frame_svma: range(".eh_frame"),
            eh_frame: bytes(".eh_frame"),
            eh_frame_hdr_svma: range(".eh_frame_hdr"),
            eh_frame_hdr: bytes(".eh_frame_hdr"),
            ..Default::default()
        },
    ))
}

/// The load bias: the difference between addresses in memory and those in the file.
fn load_bias<'data, E: FileHeader, R: ReadRef<'data>>(
    mapping: &Mapping,
    elf: &object::read::elf::ElfFile<'data, E, R>,
) -> Option<u64> {
    elf.segments().find_map(|segment| {
        let SegmentFlags::Elf { p_flags } = segment.flags() else {
            return None;
        };
        let (offset, size) = segment.file_range();
        // A mapping begins at a page boundary, the segment somewhere on that page.
        let is_it = p_flags & PF_X != 0
            && mapping.offset < offset.checked_add(size)?
            && offset < mapping.offset + (mapping.range.end - mapping.range.start);
        let own_start = segment
            .address()
            .wrapping_add(mapping.offset)
            .wrapping_sub(offset);
        is_it.then_some(mapping.range.start.wrapping_sub(own_start))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_found_in_the_maps_and_data_is_not() {
        let maps = "\
55d0-55d4 r--p 00000000 fe:00 77   /usr/bin/a program
55d4-55e0 r-xp 00004000 fe:00 77   /usr/bin/a program
7f00-7f08 rw-p 00000000 00:00 0 
7f10-7f12 r-xp 00000000 00:00 0                          [vdso]
broken";
        let found = executable(maps);
        assert_eq!(
            found,
            [
                Mapping {
                    range: 0x55d4..0x55e0,
                    offset: 0x4000,
                    inode: 77,
                    path: "/usr/bin/a program".to_owned(),
                },
                Mapping {
                    range: 0x7f10..0x7f12,
                    offset: 0,
                    inode: 0,
                    path: "[vdso]".to_owned(),
                },
            ]
        );
    }

    #[test]
    fn the_program_itself_and_the_vdso_are_loaded() {
        let names: Vec<String> = loaded()
            .iter()
            .map(|module| module.name().to_owned())
            .collect();
        let program = std::env::current_exe().unwrap();
        assert!(names.contains(&program.display().to_string()), "{names:?}");
        let has_vdso = fs::read_to_string("/proc/self/maps")
            .unwrap()
            .contains("[vdso]");
        assert_eq!(names.iter().any(|name| name == "[vdso]"), has_vdso);
    }
}
