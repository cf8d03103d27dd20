import type { ErrorCode } from '@sandwire/protocol'

/** What every thread that works on files needs first. */
export interface ThreadSetUp {
  /** The user whose file access rights the thread takes permanently. */
  readonly user: { readonly uid: number; readonly gid: number } | undefined
  readonly table: SharedArrayBuffer
}

/** The messages of one kind of thread. */
export interface ThreadTypes {
  readonly setUp: ThreadSetUp
  readonly request: { readonly verb: string }
  /** Result of each request, by its verb. */
  readonly results: object
  /** What a result may be preceded by. */
  readonly part: unknown
}

export type ToThread<T extends ThreadTypes> =
  | { readonly kind: 'setUp'; readonly setUp: T['setUp'] }
  | { readonly kind: 'request'; readonly id: number; readonly request: T['request'] }
  /** The request is canceled. */
  | { readonly kind: 'cancel'; readonly id: number }
  /** A part was consumed. */
  | { readonly kind: 'taken'; readonly id: number }

export type FromThread<T extends ThreadTypes> =
  /** The thread cannot work and has ended. */
  | { readonly kind: 'unfit'; readonly message: string }
  | { readonly kind: 'part'; readonly id: number; readonly part: T['part'] }
  | { readonly kind: 'done'; readonly id: number; readonly result: ResultOf<T> }
  | { readonly kind: 'refused'; readonly id: number; readonly code: ErrorCode; readonly message: string }

export type ResultOf<T extends ThreadTypes> = T['results'][keyof T['results']]
