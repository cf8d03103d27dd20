/**
 * Opens what a path leads to, beneath a folder. `flags` are those of `openat`; with `O_NOFOLLOW` a link at the very end is not
 * followed. Returns a descriptor or a negative errno: EXDEV for what leads out, ELOOP for links without an end.
 */
export type Resolve = (root: number, names: readonly Uint8Array[], flags: number) => number
