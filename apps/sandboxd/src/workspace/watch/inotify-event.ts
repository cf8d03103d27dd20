import { pathFromBytes } from '@sandwire/protocol'

/** Bits of inotify(7). */
export const IN_MODIFY = 0x2
export const IN_ATTRIB = 0x4
export const IN_MOVED_FROM = 0x40
export const IN_MOVED_TO = 0x80
export const IN_CREATE = 0x100
export const IN_DELETE = 0x200
export const IN_DELETE_SELF = 0x400
export const IN_MOVE_SELF = 0x800
const IN_UNMOUNT = 0x2000
const IN_Q_OVERFLOW = 0x4000
const IN_IGNORED = 0x8000
const IN_ISDIR = 0x4000_0000

/** `struct inotify_event` without its name. */
const HEADER_BYTES = 16

/** What happened to a folder that is watched, or in it. `watch` is the number of the watch. */
export type InotifyEvent =
  /** More than the kernel keeps. */
  | { readonly kind: 'lost' }
  /** The folder itself was moved or removed; then, or at once, its watch ends. */
  | { readonly kind: 'left' | 'unwatched'; readonly watch: number }
  | {
      readonly kind: 'came' | 'went' | 'changed'
      readonly watch: number
      readonly name: string
      readonly isFolder: boolean
    }

/** Decodes what was read from an inotify descriptor: whole events only, as the kernel gives them. */
export function* decodeInotify(bytes: Uint8Array): Generator<InotifyEvent> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let at = 0
  while (at + HEADER_BYTES <= bytes.byteLength) {
    const nameBytes = view.getUint32(at + 12, true)
    const field = bytes.subarray(at + HEADER_BYTES, at + HEADER_BYTES + nameBytes)
    const end = field.indexOf(0)
    const name = pathFromBytes(end < 0 ? field : field.subarray(0, end))
    const event = interpret(view.getInt32(at, true), view.getUint32(at + 4, true), name)
    if (event !== undefined) yield event
    at += HEADER_BYTES + nameBytes
  }
}

function interpret(watch: number, mask: number, name: string): InotifyEvent | undefined {
  const has = (bits: number): boolean => (mask & bits) !== 0
  if (has(IN_Q_OVERFLOW)) return { kind: 'lost' }
  if (has(IN_IGNORED)) return { kind: 'unwatched', watch }
  if (has(IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT)) return { kind: 'left', watch }
  // The folder itself: its rights or times, which whoever watches the one above is told.
  if (name === '') return undefined
  const what = { watch, name, isFolder: has(IN_ISDIR) }
  if (has(IN_CREATE | IN_MOVED_TO)) return { kind: 'came', ...what }
  if (has(IN_DELETE | IN_MOVED_FROM)) return { kind: 'went', ...what }
  return has(IN_MODIFY | IN_ATTRIB) ? { kind: 'changed', ...what } : undefined
}
