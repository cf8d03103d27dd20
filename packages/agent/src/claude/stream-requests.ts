import { type ApprovalAnswer, MAX_MESSAGE_CHARS } from '../api.ts'
import type { AgentSetting } from '../driver.ts'
import { isRecord, type Json, parseRecord, recordAt, textAt } from '../json.ts'

/** A message of a client of `/ws/claude-stream`, decoded. */
export type ClaudeRequest =
  | { readonly kind: 'ping' }
  | { readonly kind: 'initialize'; readonly payload: Json }
  /** `isReported`: the client expects `interrupted`. */
  | { readonly kind: 'interrupt'; readonly isReported: boolean }
  | {
      readonly kind: 'message'
      readonly text: string
      /** Blocks, if it is more than a text. */
      readonly content?: readonly Json[]
      readonly mode?: PermissionMode
    }
  | { readonly kind: 'setting'; readonly setting: AgentSetting }
  | {
      readonly kind: 'answer'
      readonly answer: Omit<ApprovalAnswer, 'by'>
      readonly permissions: readonly Json[]
    }
  /** Answered with an error; the connection stays open. */
  | { readonly kind: 'invalid'; readonly problem: string }

type PermissionMode = Extract<AgentSetting, { subtype: 'set_permission_mode' }>['mode']

const MODES: ReadonlyMap<string, PermissionMode> = new Map([
  ['ask', 'default'],
  ['act', 'acceptEdits'],
  ['plan', 'plan'],
  ['default', 'default'],
  ['acceptEdits', 'acceptEdits'],
])
const MODEL = /^[A-Za-z0-9._:/@[\]-]{1,128}$/
const MEDIA_TYPE = /^image\/(?:png|jpeg|gif|webp)$/
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/
const MAX_BLOCKS = 64
const MAX_PERMISSIONS = 16
const MAX_THINKING_TOKENS = 1_000_000
const MAX_SHOWN_CHARS = 40

/** Decodes a message. Anything but a JSON object is a message for the agent. */
export function parseClaudeRequest(message: string | Uint8Array): ClaudeRequest {
  const text = typeof message === 'string' ? message : new TextDecoder().decode(message)
  const value = parseRecord(text)
  if (value === undefined) return toMessage([{ type: 'text', text }], undefined)
  const type = textAt(value, 'type') ?? ''
  switch (type) {
    case 'user':
      return parseUser(value)
    case 'command':
      return parseCommand(value)
    case 'control':
      return parseControl(value)
    case 'control_response':
    case 'approval_response':
      return parseAnswer(value)
    case 'interrupt':
      return { kind: 'interrupt', isReported: true }
    case 'ping':
      return { kind: 'ping' }
    case 'restart':
      return invalid('Cannot restart the agent: connect again with force_new=1')
    default:
      return invalid(`Cannot use a message of type "${shown(type)}"`)
  }
}

function invalid(problem: string): ClaudeRequest {
  return { kind: 'invalid', problem }
}

function shown(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, '').slice(0, MAX_SHOWN_CHARS)
}

function textsAt(value: Json, name: string): readonly string[] {
  const list = value[name]
  return Array.isArray(list) ? list.filter((each) => typeof each === 'string') : []
}

function parseUser(value: Json): ClaudeRequest {
  const { message, images } = value
  const blocks = blocksOf(isRecord(message) ? message['content'] : message)
  const pictures = Array.isArray(images) ? images.map(imageOf) : []
  if (blocks === undefined || pictures.includes(undefined) || blocks.length + pictures.length > MAX_BLOCKS)
    return invalid('Cannot send the message: expected a text, or blocks of text and images')
  const files = textsAt(value, 'context_files').map((file) => `@${file}`)
  const leading = files.length === 0 ? [] : [{ type: 'text', text: files.join(' ') }]
  const content = [...leading, ...blocks, ...pictures.filter((each) => each !== undefined)]
  return toMessage(content, MODES.get(textAt(value, 'mode') ?? ''))
}

/** Text blocks and images; undefined for anything else. */
function blocksOf(content: unknown): readonly Json[] | undefined {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }]
  if (!Array.isArray(content)) return undefined
  const blocks = content.map((block: unknown): Json | undefined => {
    if (!isRecord(block)) return undefined
    const text = textAt(block, 'text')
    if (block['type'] === 'text' && text !== undefined) return { type: 'text', text }
    const source = recordAt(block, 'source')
    return block['type'] === 'image'
      ? imageOf({ data: source?.['data'], mimeType: source?.['media_type'] })
      : undefined
  })
  return blocks.some((block) => block === undefined)
    ? undefined
    : blocks.filter((block) => block !== undefined)
}

function imageOf(image: unknown): Json | undefined {
  const data = isRecord(image) ? textAt(image, 'data') : undefined
  const type = isRecord(image) ? textAt(image, 'mimeType') : undefined
  if (data === undefined || type === undefined || !BASE64.test(data) || !MEDIA_TYPE.test(type))
    return undefined
  return { type: 'image', source: { type: 'base64', media_type: type, data } }
}

function toMessage(content: readonly Json[], mode: PermissionMode | undefined): ClaudeRequest {
  const texts = content.flatMap((block) => textAt(block, 'text')?.toWellFormed() ?? [])
  const text = texts.join('\n')
  if (content.length === 0) return invalid('Cannot send the message: it is empty')
  if (text.length > MAX_MESSAGE_CHARS)
    return invalid(`Cannot send the message: it has more than ${MAX_MESSAGE_CHARS} characters`)
  return {
    kind: 'message',
    text,
    ...(content.length === 1 && texts.length === 1 ? {} : { content }),
    ...(mode === undefined ? {} : { mode }),
  }
}

function parseCommand(value: Json): ClaudeRequest {
  const command = textAt(value, 'command')?.trim() ?? ''
  if (command === '') return invalid('Cannot run the command: it is empty')
  return toMessage([{ type: 'text', text: command.startsWith('/') ? command : `/${command}` }], undefined)
}

function parseControl(value: Json): ClaudeRequest {
  const subtype = textAt(value, 'subtype') ?? ''
  switch (subtype) {
    case 'initialize':
      return { kind: 'initialize', payload: value }
    case 'interrupt':
      return { kind: 'interrupt', isReported: false }
    case 'set_permission_mode': {
      const mode = MODES.get(textAt(value, 'mode') ?? '')
      if (mode === undefined) return invalid('Cannot set the mode: expected ask, act or plan')
      return { kind: 'setting', setting: { subtype, mode } }
    }
    case 'set_model': {
      const model = textAt(value, 'model') ?? ''
      if (!MODEL.test(model)) return invalid('Cannot set the model: expected its name')
      return { kind: 'setting', setting: { subtype, model } }
    }
    case 'set_max_thinking_tokens': {
      const tokens: unknown = value['max_thinking_tokens'] ?? null
      const isValid = tokens === null || (Number.isInteger(tokens) && Number(tokens) >= 0)
      if (!isValid || Number(tokens) > MAX_THINKING_TOKENS)
        return invalid('Cannot set the thinking tokens: expected a whole number or null')
      return {
        kind: 'setting',
        setting: { subtype, max_thinking_tokens: tokens === null ? null : Number(tokens) },
      }
    }
    default:
      return invalid(`Cannot use a control message "${shown(subtype)}"`)
  }
}

/** An answer in the client's own fields, or as the program itself takes it, in `response`. */
function parseAnswer(value: Json): ClaudeRequest {
  const outer = recordAt(value, 'response')
  const inner = recordAt(outer, 'response') ?? outer ?? value
  const requestId = textAt(value, 'request_id') ?? textAt(outer, 'request_id') ?? ''
  const updatedInput = recordAt(inner, 'updatedInput') ?? recordAt(value, 'updatedInput')
  const answers = recordAt(value, 'answers') ?? recordAt(updatedInput, 'answers')
  const decision = decisionOf(value, inner) ?? (answers === undefined ? undefined : 'allow')
  if (requestId === '' || requestId.length > 128)
    return invalid('Cannot answer the request: "request_id" is missing')
  if (decision === undefined) return invalid('Cannot answer the request: expected the decision allow or deny')
  const message = textAt(inner, 'message')?.slice(0, MAX_MESSAGE_CHARS)
  const permissions = inner['updatedPermissions'] ?? value['permission_suggestions']
  return {
    kind: 'answer',
    answer: {
      requestId,
      decision,
      ...(message === undefined ? {} : { message }),
      ...(answers === undefined ? {} : { answers: toTexts(answers) }),
      ...(updatedInput === undefined ? {} : { updatedInput: JSON.stringify(updatedInput) }),
    },
    permissions: Array.isArray(permissions) ? permissions.filter(isRecord).slice(0, MAX_PERMISSIONS) : [],
  }
}

function decisionOf(value: Json, inner: Json): 'allow' | 'deny' | undefined {
  if (typeof value['approved'] === 'boolean') return value['approved'] ? 'allow' : 'deny'
  const decision = textAt(inner, 'behavior') ?? textAt(value, 'decision')
  return decision === 'allow' || decision === 'deny' ? decision : undefined
}

/** Answers by question; several choices become one text. */
function toTexts(answers: Json): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(answers).map(([question, answer]) => [
      question,
      Array.isArray(answer) ? answer.map(toText).join(', ') : toText(answer),
    ]),
  )
}

function toText(answer: unknown): string {
  return typeof answer === 'string' ? answer : JSON.stringify(answer)
}
