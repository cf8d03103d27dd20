import type { NumberedEvent, RunEvent } from './event.ts'

/** Characters of a tool's result that are shown. */
const MAX_RESULT_CHARS = 400

/** Replaces control characters, so that text of a model or a tool cannot control a terminal. Line breaks and tabs stay. */
export function withoutControls(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}]/gu, (character) =>
    character === '\n' || character === '\t' ? character : '',
  )
}

function firstLines(text: string): string {
  const cut = text.length > MAX_RESULT_CHARS ? `${text.slice(0, MAX_RESULT_CHARS)}…` : text
  return cut.trimEnd().replaceAll('\n', '\n    ')
}

/** Their calls and results say nothing that a `todo` event does not show. */
const TODO_TOOLS: ReadonlySet<string> = new Set(['TodoWrite', 'TaskCreate', 'TaskUpdate'])

const TODO_MARKS = { pending: '[ ]', in_progress: '[>]', completed: '[x]' } as const

/** Text of an event for people, with line breaks at its end; empty for events that say nothing new. */
function textOf(event: RunEvent): string {
  switch (event.type) {
    case 'stdout':
      return event.data.endsWith('\n') ? event.data : `${event.data}\n`
    case 'stderr':
      return event.data.endsWith('\n') ? event.data : `${event.data}\n`
    case 'tool_call':
      return TODO_TOOLS.has(event.name) ? '' : `> ${event.title}\n`
    case 'tool_result':
      if (TODO_TOOLS.has(event.name ?? '') && !event.isError) return ''
      return event.content === '' ? '' : `    ${event.isError ? 'error: ' : ''}${firstLines(event.content)}\n`
    case 'todo':
      return event.items.map(({ status, content }) => `  ${TODO_MARKS[status]} ${content}\n`).join('')
    case 'plan':
      return `Plan:\n${event.text.trimEnd()}\n`
    case 'file_change':
      return `  ${event.action} ${event.from === undefined ? '' : `${event.from} -> `}${event.path}\n`
    case 'awaiting_input':
      return event.kind === 'message' ? '' : `? ${event.prompt}\n`
    case 'result':
      return `Result: ${event.status}, ${event.filesChanged.length} ${event.filesChanged.length === 1 ? 'file' : 'files'} changed\n`
    case 'status':
      return textOfStatus(event)
    // `stdout` has the same text, and usage is shown elsewhere.
    case 'text':
    case 'usage':
    case 'complete':
      return ''
  }
}

function textOfStatus(event: Extract<RunEvent, { type: 'status' }>): string {
  switch (event.status) {
    case 'retry':
      return `The model API failed${event.httpStatus === null ? '' : ` with ${event.httpStatus}`}; attempt ${event.attempt} of ${event.maxAttempts}\n`
    case 'message':
      return event.receipt === 'queued' ? `< ${event.text}\n` : ''
    case 'approval':
      return `  answered: ${event.outcome}\n`
    case 'stopping':
      return event.reason === 'completed' ? '' : `Stopping: ${event.message}\n`
    case 'warning':
      return `warning: ${event.message}\n`
    case 'state':
    case 'session':
      return ''
  }
}

/** An event as text for people, without control characters; empty for events that say nothing new. */
export function formatEvent({ event }: Pick<NumberedEvent, 'event'>): string {
  return withoutControls(textOf(event))
}
