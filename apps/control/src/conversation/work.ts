import type { AgentState } from '@sandwire/agent'
import type { Activity, ConversationStateFrame, SandboxStatus } from './frames.ts'
import { keptVersions } from '../run/turns.ts'
import type { ConversationSnapshot, GivenAnswer, QueuedMessage, Restore, RestoreNotice } from './snapshot.ts'

/** A message for the agent. First the files are kept as they are before the agent gets it. */
interface MessageWork {
  readonly run: string
  readonly message: QueuedMessage
  readonly isHeld: boolean
  /** Other versions that the conversation keeps. */
  readonly kept: readonly number[]
  readonly notice: RestoreNotice | null
}

/** What has to be done at the sandbox. Everything can be repeated; it follows from the stored state alone. */
export type Work =
  | (MessageWork & {
      readonly kind: 'start'
      readonly resume: string | null
      readonly systemPrompt: string | null
    })
  | { readonly kind: 'connect'; readonly run: string; readonly after: number }
  | (MessageWork & { readonly kind: 'deliver' })
  | { readonly kind: 'answer'; readonly run: string; readonly answer: GivenAnswer }
  | { readonly kind: 'interrupt'; readonly run: string }
  | { readonly kind: 'stop'; readonly run: string }
  /** The agent may have come to rest. */
  | { readonly kind: 'check'; readonly run: string }
  | { readonly kind: 'pin'; readonly isPinned: boolean }
  | { readonly kind: 'forget'; readonly run: string }
  | { readonly kind: 'restore'; readonly restore: Restore; readonly kept: readonly number[] }

/** True for states in which nothing happens until a person acts. */
export function isAtRest(agent: AgentState): boolean {
  return agent === 'idle' || agent === 'awaiting'
}

/** The sandbox stays awake, and reports what happens to its files, while the agent works or waits for an answer, or files are restored. */
function wantsPin({ program, restore }: ConversationSnapshot): boolean {
  if (restore !== null) return true
  if (program.kind === 'resting') return program.agent === 'awaiting'
  return program.kind === 'starting' || program.kind === 'working'
}

/** What has to be done next. */
export function nextWork(state: ConversationSnapshot): Work | undefined {
  const { program, queue, isPinned, ended, resume, systemPrompt, restore } = state
  if (wantsPin(state) !== isPinned) return { kind: 'pin', isPinned: !isPinned }
  const [head] = queue
  const [old] = ended
  if (program.kind === 'working' || program.kind === 'resting') return workAtAgent(state, program)
  if (old !== undefined) return { kind: 'forget', run: old }
  if (restore !== null) return { kind: 'restore', restore, kept: keptVersions(state) }
  if (program.kind === 'none' || head === undefined) return undefined
  return { kind: 'start', ...messageWork(state, program.run, head), resume, systemPrompt }
}

function messageWork(state: ConversationSnapshot, run: string, message: QueuedMessage): MessageWork {
  const { turns, notice } = state
  const isHeld = turns.some((turn) => turn.message === message.id)
  return { run, message, isHeld, kept: keptVersions(state), notice }
}

function workAtAgent(
  state: ConversationSnapshot,
  program: Extract<ConversationSnapshot['program'], { kind: 'working' | 'resting' }>,
): Work | undefined {
  const { queue, requests, wantsClose, wantsInterrupt, restore } = state
  const { run } = program
  if (program.kind === 'working' && !program.isOpen) return { kind: 'connect', run, after: program.seq }
  if (wantsClose) return { kind: 'stop', run }
  const [answer] = requests.flatMap((each) => (each.isDelivered ? [] : (each.answer ?? [])))
  if (answer !== undefined) return { kind: 'answer', run, answer }
  if (wantsInterrupt) return { kind: 'interrupt', run }
  // Until its conversation has begun, the program may fail without having read anything.
  const hasBegun = program.kind === 'resting' || program.first === null
  const [head] = queue
  if (head !== undefined && hasBegun && restore === null)
    return { kind: 'deliver', ...messageWork(state, run, head) }
  if (program.kind === 'resting') return undefined
  return isAtRest(program.agent) && program.checkedSeq !== program.seq ? { kind: 'check', run } : undefined
}

export function activityOf({ program, isStarted, requests, restore, queue }: ConversationSnapshot): Activity {
  if (restore !== null) return 'restoring'
  if (program.kind === 'starting') return 'starting'
  if (program.kind === 'none') return isStarted ? 'idle' : 'new'
  if (requests.some(({ answer }) => answer === null)) return 'awaiting'
  // A resting agent is about to get messages and answers.
  return program.kind === 'working' || queue.length > 0 || requests.length > 0 ? 'working' : 'idle'
}

export function stateFrameOf(state: ConversationSnapshot): ConversationStateFrame {
  const { program, waiting, isPaused, allowedTools } = state
  return {
    type: 'conversation_state',
    state: activityOf(state),
    isBlocked: program.kind === 'starting' && program.isBlocked === true,
    waiting,
    isPaused,
    allowedTools: allowedTools.map(({ name }) => name),
  }
}

export function sandboxStatusOf({ program }: ConversationSnapshot): SandboxStatus {
  if (program.kind === 'starting') return 'connecting'
  if (program.kind === 'working') return program.isOpen ? 'connected' : 'connecting'
  return 'disconnected'
}
