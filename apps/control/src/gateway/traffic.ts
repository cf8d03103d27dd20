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
  readonly maxBytes: number
}

export const JSON_ANSWER: Answer = { type: 'application/json', isDownload: false, maxBytes: 64 * MIB }
export const FILE: Answer = { type: 'application/octet-stream', isDownload: true, maxBytes: 1024 * GIB }
export const TAR: Answer = { type: 'application/x-tar', isDownload: true, maxBytes: 64 * GIB }
export const EVENTS: Answer = { type: 'text/event-stream', isDownload: false, maxBytes: 256 * MIB }
export const LINES: Answer = { type: 'application/x-ndjson', isDownload: false, maxBytes: 256 * MIB }
