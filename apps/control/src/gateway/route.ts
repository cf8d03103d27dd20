import type { Action } from '../audit/actions.ts'
import { type Answer, JSON_ANSWER, NO_BODY, type RequestBody } from './traffic.ts'

/** A route that control forwards to the workspace of a sandbox. Nothing else of a request is forwarded. */
export interface GatewayRoute {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE'
  /** As the router spells it. */
  readonly path: string
  /** Where it leads at sandboxd; `:id` is that of the public path. */
  readonly upstream: string
  /** Reading takes the scope `connect`, changing takes `exec`; both take the right to work in the sandbox. */
  readonly does: 'read' | 'change'
  /** What the audit calls it; what only asks is not written down. */
  readonly action?: Action
  /** A parameter which says, by not being 0, that the request goes on with an earlier one. */
  readonly continues?: string
  /** `compat` routes answer errors as `{"detail": …}` and take the sandbox as a query parameter. */
  readonly api: 'native' | 'compat'
  /** Parameters that go along, and what they say; the others are refused. */
  readonly parameters: Readonly<Record<string, string>>
  /** Of these, those that may be given several times. */
  readonly repeatable: readonly string[]
  readonly body: RequestBody
  readonly answer: Answer
  /** Until the answer has to begin, counted from the last byte of the request. */
  readonly answerMs: number
  /** Until the answer has to be over: by then the right to it is to be shown again. */
  readonly longestMs: number
  /** Can be asked again when nobody answered. Only without a body: a stream is there once. */
  readonly isIdempotent: boolean
  /** What it takes of a person's budget for what makes a sandbox work hard; 0 for what does not. */
  readonly cost: number
  /** Whether HEAD is asked of sandboxd too. */
  readonly hasHead: boolean
  readonly summary: string
}

/** Work on one file or folder. */
const FILE_ANSWER_MS = 20_000
/** Work on a whole repository. */
export const LONG_ANSWER_MS = 40_000
export const MINUTE_MS = 60_000

export const PATH = { path: 'Path in the workspace; bytes that are no UTF-8 percent-encoded' }
const SANDBOX = '/api/workspaces/:sandbox'

export type RouteRow = Pick<GatewayRoute, 'method' | 'summary'> & Partial<GatewayRoute>

const DEFAULTS = {
  parameters: {},
  repeatable: [],
  body: NO_BODY,
  answer: JSON_ANSWER,
  answerMs: FILE_ANSWER_MS,
  cost: 0,
  hasHead: false,
} as const

export function nativeRoute(tail: string, row: RouteRow): GatewayRoute {
  const path = `${SANDBOX}/${tail}`
  const does = row.does ?? (row.action === undefined ? 'read' : 'change')
  const isIdempotent = row.method === 'GET'
  const upstream = `/workspace/${tail}`
  const longestMs = row.longestMs ?? (row.answerMs ?? FILE_ANSWER_MS) + MINUTE_MS
  return { ...DEFAULTS, path, upstream, does, api: 'native', isIdempotent, ...row, longestMs }
}
