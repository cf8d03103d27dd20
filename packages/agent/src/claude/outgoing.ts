import type { Json } from '../json.ts'

/** Lines that Claude Code reads from its stdin. */

export function initializeLine(requestId: string): string {
  return controlRequest(requestId, { subtype: 'initialize' })
}

/** A message of a person. The program reports what becomes of it under the UUID. */
export function userLine(text: string, uuid: string): string {
  return JSON.stringify({
    type: 'user',
    message: { role: 'user', content: text },
    parent_tool_use_id: null,
    uuid,
  })
}

/** A version 4 UUID of a nonce and a counter. */
export function messageUuid(nonce: string, count: number): string {
  const hex = count.toString(16).padStart(8, '0')
  return `${hex}-${nonce.slice(0, 4)}-4${nonce.slice(4, 7)}-8${nonce.slice(7, 10)}-${nonce.slice(10, 20).padEnd(12, '0')}`
}

/** Ends the turn, and drops messages that wait for the next. */
export function interruptLine(requestId: string): string {
  return controlRequest(requestId, { subtype: 'interrupt', cancel_queued: true })
}

/** Allows a tool with this input; `acceptsEdits` allows edits of files for the rest of the conversation. */
export function allowLine(requestId: string, updatedInput: Json, acceptsEdits: boolean): string {
  const mode = { type: 'setMode', mode: 'acceptEdits', destination: 'session' }
  return controlResponse(requestId, {
    behavior: 'allow',
    updatedInput,
    ...(acceptsEdits ? { updatedPermissions: [mode] } : {}),
  })
}

export function denyLine(requestId: string, message: string): string {
  return controlResponse(requestId, { behavior: 'deny', message, interrupt: false })
}

export function unsupportedLine(requestId: string): string {
  const error = 'This host does not support the request'
  return JSON.stringify({
    type: 'control_response',
    response: { subtype: 'error', request_id: requestId, error },
  })
}

function controlRequest(requestId: string, request: Json): string {
  return JSON.stringify({ type: 'control_request', request_id: requestId, request })
}

function controlResponse(requestId: string, response: Json): string {
  return JSON.stringify({
    type: 'control_response',
    response: { subtype: 'success', request_id: requestId, response },
  })
}
