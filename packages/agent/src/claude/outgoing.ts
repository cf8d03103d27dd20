import type { AgentSetting } from '../driver.ts'
import type { Json } from '../json.ts'

/** Id of the request that is sent first. The program's response to it is for the driver only. */
export const INITIALIZE_ID = 'sandwire-initialize'

/** Lines that Claude Code reads from its stdin. */

export function initializeLine(): string {
  return controlRequest(INITIALIZE_ID, { subtype: 'initialize' })
}

export function settingLine(requestId: string, setting: AgentSetting): string {
  return controlRequest(requestId, { ...setting })
}

/** A message of a person. The program reports what becomes of it under the UUID. */
export function userLine(content: string | readonly Json[], uuid: string): string {
  return JSON.stringify({
    type: 'user',
    message: { role: 'user', content },
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

/** The permission to edit files without asking. */
export const ACCEPT_EDITS: Json = { type: 'setMode', mode: 'acceptEdits' }

/** Allows a tool with this input, and adds permissions for the rest of the conversation; never to a file of settings. */
export function allowLine(requestId: string, updatedInput: Json, permissions: readonly Json[]): string {
  const updatedPermissions = permissions.map((each) => ({ ...each, destination: 'session' }))
  return controlResponse(requestId, {
    behavior: 'allow',
    updatedInput,
    ...(updatedPermissions.length > 0 ? { updatedPermissions } : {}),
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
