/** A denied system call: its numbers on x86-64 and arm64, where it exists. */
interface DeniedCall {
  readonly x64: number | undefined
  readonly arm64: number | undefined
}

function call(x64: number | undefined, arm64: number | undefined): DeniedCall {
  return { x64, arm64 }
}

/** Numbers from 424 are the same on all architectures. */
function common(number: number): DeniedCall {
  return { x64: number, arm64: number }
}

/** All fail with EPERM. */
export const DENIED_CALLS: Readonly<Record<string, DeniedCall>> = {
  // Mounts.
  mount: call(165, 40),
  umount2: call(166, 39),
  pivot_root: call(155, 41),
  chroot: call(161, 51),
  open_tree: common(428),
  move_mount: common(429),
  fsopen: common(430),
  fsconfig: common(431),
  fsmount: common(432),
  fspick: common(433),
  mount_setattr: common(442),
  open_tree_attr: common(467),
  // Namespaces; `clone` is filtered by its flags.
  unshare: call(272, 97),
  setns: call(308, 268),
  // Other processes' memory and descriptors.
  ptrace: call(101, 117),
  process_vm_readv: call(310, 270),
  process_vm_writev: call(311, 271),
  kcmp: call(312, 272),
  pidfd_getfd: common(438),
  // Parts of the kernel with a history of vulnerabilities and no use in sandboxes.
  bpf: call(321, 280),
  io_uring_setup: common(425),
  io_uring_enter: common(426),
  io_uring_register: common(427),
  add_key: call(248, 217),
  request_key: call(249, 218),
  keyctl: call(250, 219),
  userfaultfd: call(323, 282),
  perf_event_open: call(298, 241),
  fanotify_init: call(300, 262),
  lookup_dcookie: call(212, 18),
  nfsservctl: call(180, 42),
  modify_ldt: call(154, undefined),
  uselib: call(134, undefined),
  // Files by handle, which bypass path checks.
  name_to_handle_at: call(303, 264),
  open_by_handle_at: call(304, 265),
  // The machine itself.
  kexec_load: call(246, 104),
  kexec_file_load: call(320, 294),
  init_module: call(175, 105),
  finit_module: call(313, 273),
  delete_module: call(176, 106),
  create_module: call(174, undefined),
  swapon: call(167, 224),
  swapoff: call(168, 225),
  reboot: call(169, 142),
  quotactl: call(179, 60),
  quotactl_fd: common(443),
  acct: call(163, 89),
  syslog: call(103, 116),
  vhangup: call(153, 58),
  settimeofday: call(164, 170),
  clock_settime: call(227, 112),
  iopl: call(172, undefined),
  ioperm: call(173, undefined),
}

/** System calls that are filtered by an argument, or fail with another error. */
export const FILTERED_CALLS = {
  clone: call(56, 220),
  clone3: common(435),
  io_setup: call(206, 0),
  ioctl: call(16, 29),
  memfd_create: call(319, 279),
  memfd_secret: common(447),
  msgget: call(68, 186),
  personality: call(135, 92),
  prlimit64: call(302, 261),
  semget: call(64, 190),
  setsockopt: call(54, 208),
  shmget: call(29, 194),
  socket: call(41, 198),
  socketpair: call(53, 199),
} as const
