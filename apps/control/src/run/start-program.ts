import { sandboxIdOfConversation } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import { z } from 'zod'
import { agentViewSchema } from './agent-responses.ts'

const agentList = z.object({ agents: z.array(agentViewSchema) })

/** Requests to a sandbox; they return the JSON of sandboxd's responses. */
export interface ProgramRequests {
  /** Throws `conflict` while another program runs. */
  readonly start: () => Promise<unknown>
  readonly list: () => Promise<unknown>
  readonly stop: (run: string) => Promise<unknown>
}

/** Programs of conversations are named by the conversation and a number. */
function isOfConversation(run: string): boolean {
  return sandboxIdOfConversation(run.replace(/-[0-9]+$/, '')) !== undefined
}

/**
 * Starts an agent's program. Programs of conversations that rest in the same sandbox are ended for it, since a sandbox has one
 * at a time; the next message starts them again. Throws `run_not_started` then, and `conflict` while another one works.
 */
export async function startProgram({ start, list, stop }: ProgramRequests): Promise<unknown> {
  try {
    return await start()
  } catch (error) {
    if (SandwireError.from(error).code !== 'conflict') throw error
    const { agents } = agentList.parse(await list())
    const resting = agents.filter(({ run, state }) => state === 'idle' && isOfConversation(run))
    if (resting.length === 0) throw error
    for (const { run } of resting) await stop(run)
    throw new SandwireError('run_not_started', 'Cannot start the agent: another one is ending')
  }
}
