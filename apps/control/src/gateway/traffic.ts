const KIB = 1024
const MIB = 1024 * KIB
const GIB = 1024 * MIB

/** What a request may bring. */
export interface RequestBody {
  /** `json` is read here first, so that it means one thing only; the others stream through. */
  readonly kind: 'nothing' | 'json' | 'content' | 'bytes'
  readonly maxBytes: number
}

export const NO_BODY: RequestBody = { kind: 'nothing', maxBytes: 0 }
/** A few paths and flags. */
export const JSON_BODY: RequestBody = { kind: 'json', maxBytes: 256 * KIB }
/** The text of a file in JSON. */
export const CONTENT_BODY: RequestBody = { kind: 'content', maxBytes: 16 * MIB }
/** A file or a tar stream as it is. */
export const BYTES_BODY: RequestBody = { kind: 'bytes', maxBytes: 8 * GIB }

/** What an answer may be. */
export interface Answer {
  /** As sandboxd has to say it, without parameters, and as the client is told. */
  readonly type: string
  /** With it a browser stores it and never shows it. */
  readonly isDownload: boolean
  /**
   * Whether how it ends can be seen in it: by its last line or block. workerd ends an answer of unknown length that breaks off
   * like a whole one, so what has no such end needs a length.
   */
  readonly hasEnd: boolean
  readonly maxBytes: number
}

const SHOWN = { isDownload: false, hasEnd: true } as const

export const JSON_ANSWER: Answer = { ...SHOWN, type: 'application/json', maxBytes: 64 * MIB }
export const EVENTS: Answer = { ...SHOWN, type: 'text/event-stream', maxBytes: 256 * MIB }
export const LINES: Answer = { ...SHOWN, type: 'application/x-ndjson', maxBytes: 256 * MIB }
export const TAR: Answer = {
  type: 'application/x-tar',
  isDownload: true,
  hasEnd: true,
  maxBytes: 64 * GIB,
}
export const FILE: Answer = {
  type: 'application/octet-stream',
  isDownload: true,
  hasEnd: false,
  maxBytes: 1024 * GIB,
}
