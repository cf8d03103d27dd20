/** A request and the one answer to it. */
export interface Golden {
  /** Method and path, as they are sent. */
  readonly ask: string
  /** Sent as it is when it is a text, else as JSON. */
  readonly body?: unknown
  readonly status: number
  /** Byte for byte; `$WORDS` of the template are wild. */
  readonly text: string
}

/** Goldens that follow each other in one workspace. */
export interface Chapter {
  readonly about: string
  /** Run in the workspace before. */
  readonly script?: string
  readonly goldens: readonly Golden[]
}

export const EMPTY = 'find . -mindepth 1 -maxdepth 1 -exec rm -rf {} +'

export const ok = (ask: string, text: string): Golden => ({ ask, status: 200, text })
export const detail = (ask: string, status: number, message: string): Golden => ({
  ask,
  status,
  text: JSON.stringify({ detail: message }),
})
export const flaw = (ask: string, flaws: string, body?: unknown): Golden => ({
  ask,
  status: 422,
  text: `{"detail":[${flaws}]}`,
  ...(body === undefined ? {} : { body }),
})
export const MISSING_PATH = '{"type":"missing","loc":["query","path"],"msg":"Field required","input":null}'

export const json = (ask: string, body: unknown, text: string): Golden => ({ ask, body, status: 200, text })
export const refused = (ask: string, body: unknown, status: number, message: string): Golden => ({
  ...detail(ask, status, message),
  body,
})
export const missingIn = (field: string, input: string): string =>
  `{"type":"missing","loc":["body","${field}"],"msg":"Field required","input":${input}}`
export const NO_JSON =
  '{"type":"json_invalid","loc":["body",$COUNT],"msg":"JSON decode error","input":{},"ctx":{"error":"$TEXT"}}'
export const NO_BODY = '{"type":"missing","loc":["body"],"msg":"Field required","input":null}'
