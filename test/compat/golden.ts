/** A request and its exact response. */
export interface Golden {
  /** Method and path. */
  readonly request: string
  /** A string is sent unchanged, anything else as JSON. */
  readonly body?: unknown
  readonly status: number
  /** Expected body, byte for byte; `$NAMES` of the template are wildcards. */
  readonly text: string
}

/** Goldens that run in order in one workspace. */
export interface GoldenGroup {
  readonly title: string
  /** Runs in the workspace first. */
  readonly script?: string
  readonly goldens: readonly Golden[]
}

export const EMPTY = 'find . -mindepth 1 -maxdepth 1 -exec rm -rf {} +'

export const ok = (request: string, text: string): Golden => ({ request, status: 200, text })
export const detail = (request: string, status: number, message: string): Golden => ({
  request,
  status,
  text: JSON.stringify({ detail: message }),
})
export const unprocessable = (request: string, problems: string, body?: unknown): Golden => ({
  request,
  status: 422,
  text: `{"detail":[${problems}]}`,
  ...(body === undefined ? {} : { body }),
})
export const MISSING_PATH = '{"type":"missing","loc":["query","path"],"msg":"Field required","input":null}'

export const json = (request: string, body: unknown, text: string): Golden => ({
  request,
  body,
  status: 200,
  text,
})
export const refused = (request: string, body: unknown, status: number, message: string): Golden => ({
  ...detail(request, status, message),
  body,
})
export const missingIn = (field: string, input: string): string =>
  `{"type":"missing","loc":["body","${field}"],"msg":"Field required","input":${input}}`
export const NO_JSON =
  '{"type":"json_invalid","loc":["body",$COUNT],"msg":"JSON decode error","input":{},"ctx":{"error":"$TEXT"}}'
export const NO_BODY = '{"type":"missing","loc":["body"],"msg":"Field required","input":null}'
