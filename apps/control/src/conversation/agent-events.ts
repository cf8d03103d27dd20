import type { InputRequest, RunEvent } from '@sandwire/agent'
import type { ConversationDraft } from './draft.ts'
import type { StoredFrame } from './frames.ts'
import { toPersisted } from './persisted-message.ts'
import { toInitMessage, toSdkMessage } from './sdk-message.ts'

/** Accumulated text of one turn. */
const MAX_TURN_CHARS = 512 * 1024

/** Takes an event of the agent into the conversation. The end of its program (`complete`) is left to the caller. */
export function takeAgentEvent(draft: ConversationDraft, event: RunEvent, uuid: string): void {
  switch (event.type) {
    case 'text':
    case 'tool_call':
    case 'tool_result': {
      if (event.type === 'text' && event.thinking !== true && event.subagent === undefined)
        accumulate(draft, event.text)
      draft.append({ type: 'sdk_message', message: toSdkMessage(event, draft.state.resume, uuid) })
      return
    }
    case 'todo':
    case 'plan':
    case 'file_change':
      draft.append({ type: 'agent_event', event: { ...event } })
      return
    case 'awaiting_input':
      return event.kind === 'message' ? draft.done('end_turn') : requested(draft, event)
    case 'usage':
      return draft.set({ tokens: event.inputTokens + event.outputTokens })
    case 'status':
      return status(draft, event)
    case 'result':
      return result(draft, event)
    case 'complete':

    case 'stdout':
    case 'stderr':
      return undefined
  }
}

function result(draft: ConversationDraft, { status, summary }: Extract<RunEvent, { type: 'result' }>): void {
  const { program, turn } = draft.state
  if (draft.cannotResume && (status === 'failed' || status === 'crashed')) return
  if (program.kind === 'working' && program.first !== null) {
    draft.canceled(program.first.id)
    draft.set({ program: { ...program, first: null } })
  }
  if (turn === null) return
  if (status !== 'completed' && status !== 'aborted') {
    const message = summary === '' ? `The agent ended: ${status}` : summary
    draft.append({ type: 'error', code: 'run_ended', message })
  }
  draft.done(status === 'completed' ? 'end_turn' : status)
}

function status(draft: ConversationDraft, status: Extract<RunEvent, { type: 'status' }>): void {
  const { program } = draft.state
  switch (status.status) {
    case 'state':
      if (program.kind === 'working') draft.set({ program: { ...program, agent: status.state } })
      if (status.state === 'turn')
        draft.set({ turn: draft.state.turn ?? { text: '', tokens: draft.state.tokens } })
      return
    case 'session': {
      const { agentSessionId, model, version } = status
      if (program.kind === 'working' && program.first !== null) draft.noticeSent(program.first.id)
      draft.set({
        resume: agentSessionId,
        ...(program.kind === 'working' ? { program: { ...program, first: null } } : {}),
      })
      draft.append({ type: 'sdk_message', message: toInitMessage(agentSessionId, model, version) })
      return
    }
    case 'approval': {
      const { requestId, outcome, by } = status
      const open = draft.state.requests.find((each) => each.requestId === requestId)
      if (open === undefined) return
      draft.set({ requests: draft.state.requests.filter((each) => each !== open) })
      if (open.answer === null) draft.resolve(requestId, outcome, by)
      return
    }
    case 'message':
      // The response to the request that delivered it may have been lost.
      draft.delivered(status.id)
      if (status.receipt === 'canceled') draft.canceled(status.id)
      return
    case 'retry':
    case 'stopping':
    case 'warning':
      return undefined
  }
}

function requested(draft: ConversationDraft, request: InputRequest): void {
  const { requestId, kind, deadlineMs, tool, questions = [] } = request
  if (kind === 'message' || draft.state.requests.some((each) => each.requestId === requestId)) return
  const name = kind === 'permission' ? tool?.name : undefined
  const allowed = draft.state.allowedTools.find((each) => each.name === name)
  const open = {
    requestId,
    kind,
    deadlineMs,
    ...(name === undefined ? {} : { tool: name }),
    answer: allowed === undefined ? null : ({ requestId, decision: 'allow', by: allowed.by } as const),
    isDelivered: false,
  }
  draft.set({ requests: [...draft.state.requests, open] })
  // Its call is in the transcript; a request that is already answered is not shown.
  if (allowed !== undefined) return
  const frame: StoredFrame =
    kind === 'question'
      ? {
          type: 'ask_user_question',
          requestId,
          deadlineMs,
          questions: questions.map(({ allowsMany, ...each }) => ({ ...each, multiSelect: allowsMany })),
        }
      : {
          type: 'tool_permission_request',
          requestId,
          toolName: tool?.name ?? '',
          toolInput: tool?.input ?? {},
          title: request.prompt,
          deadlineMs,
        }
  const seq = draft.append(frame)
  draft.persist(seq, toPersisted({ kind: 'request', request, labels: draft.state.labels }))
}

function accumulate(draft: ConversationDraft, text: string): void {
  const turn = draft.state.turn ?? { text: '', tokens: draft.state.tokens }
  const joined = turn.text === '' ? text : `${turn.text}\n\n${text}`
  draft.set({ turn: { ...turn, text: joined.slice(0, MAX_TURN_CHARS) } })
}
