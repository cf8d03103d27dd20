import { SandwireError } from '@sandwire/protocol'
import type { RunStreamCall } from './call.ts'
import type { RunSandboxClient } from './sandbox-client.ts'
import { readAgentError } from './agent-request.ts'
import type { RunStore } from './store.ts'

const POLL_MS = 100
/** How long a client waits for its program: a sandbox is started, and Claude Code may be installed. */
const MAX_WAIT_MS = 120_000

export interface ClaudeStreamDependencies {
  readonly store: RunStore
  readonly sandbox: Pick<RunSandboxClient, 'send'>
  /** The client may send messages, answers and settings. */
  readonly mayInput: boolean
  readonly sleep: (ms: number) => Promise<void>
}

/** Waits until the sandbox has the run. Throws when it ended before. */
async function waitForAgent({
  store,
  sleep,
}: Pick<ClaudeStreamDependencies, 'store' | 'sleep'>): Promise<void> {
  for (let waitedMs = 0; waitedMs < MAX_WAIT_MS; waitedMs += POLL_MS) {
    const { state, journal } = store.read() ?? {}
    if (journal !== null && journal !== undefined) return
    if (state?.kind === 'ended' || state?.kind === 'collecting')
      throw new SandwireError('run_ended', state.message ?? 'Cannot start the agent')
    await sleep(POLL_MS)
  }
  throw new SandwireError('run_not_started', 'The agent did not start in time; connect again to wait longer')
}

/** Passes the sandbox's socket with the messages of `/ws/claude-stream` through. */
export async function openClaudeStream(
  call: RunStreamCall,
  deps: ClaudeStreamDependencies,
): Promise<Response> {
  await waitForAgent(deps)
  const { name = '', isResumed = false, isJoin = false } = call.session ?? {}
  const query = new URLSearchParams({
    name,
    resumed: isResumed ? '1' : '0',
    join: isJoin ? '1' : '0',
    input: deps.mayInput ? '1' : '0',
  })
  const response = await deps.sandbox.send({
    method: 'GET',
    path: `/claude-stream?${query.toString()}`,
    headers: { upgrade: 'websocket' },
    viewer: call,
  })
  if (response.status === 101 && response.webSocket !== null) return response
  throw await readAgentError(response)
}
