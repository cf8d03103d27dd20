/** Linux errno values, the same on x86-64 and arm64 (asm-generic). */
export const EPERM = 1
export const ENOENT = 2
export const EINTR = 4
export const ENXIO = 6
export const EAGAIN = 11
export const EACCES = 13
export const EBUSY = 16
export const EEXIST = 17
export const EXDEV = 18
export const ENODEV = 19
export const ENOTDIR = 20
export const EISDIR = 21
export const EINVAL = 22
export const ETXTBSY = 26
export const EFBIG = 27
export const ENOSPC = 28
export const EROFS = 30
export const ENAMETOOLONG = 36
export const ENOSYS = 38
export const ENOTEMPTY = 39
export const ELOOP = 40
export const EOPNOTSUPP = 95
export const EDQUOT = 122

const isArm = process.arch === 'arm64'

/** Flags of `open`. O_DIRECTORY and O_NOFOLLOW differ between the architectures. */
export const O_RDONLY = 0
export const O_WRONLY = 0o1
export const O_RDWR = 0o2
export const O_CREAT = 0o100
export const O_EXCL = 0o200
export const O_NOCTTY = 0o400
export const O_NONBLOCK = 0o4000
export const O_DIRECTORY = isArm ? 0o40000 : 0o200000
export const O_NOFOLLOW = isArm ? 0o100000 : 0o400000
export const O_CLOEXEC = 0o2000000
/** Refers to a file without opening it: needs no read permission and does not touch a device. */
export const O_PATH = 0o10000000
/** Creates an unnamed file in a folder. */
export const O_TMPFILE = 0o20000000 | O_DIRECTORY

export const AT_FDCWD = -100
export const AT_SYMLINK_NOFOLLOW = 0x100
export const AT_REMOVEDIR = 0x200
export const AT_SYMLINK_FOLLOW = 0x400
export const AT_EMPTY_PATH = 0x1000

export const RENAME_NOREPLACE = 1
export const RENAME_EXCHANGE = 2

/** Path resolution flags of `openat2`. */
export const RESOLVE_NO_MAGICLINKS = 0x02
export const RESOLVE_NO_SYMLINKS = 0x04
export const RESOLVE_BENEATH = 0x08

/** File types in `st_mode`. */
export const S_IFMT = 0o170000
export const S_IFREG = 0o100000
export const S_IFDIR = 0o040000
export const S_IFLNK = 0o120000
