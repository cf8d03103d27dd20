import { gatewayGrantsOf } from '../credentials/grants.ts'
import type { Env } from '../env.ts'
import { unwrap } from '../outcome.ts'
import { toSpent } from '../run/agent-start.ts'
import type { ConversationStore } from './store.ts'
import type { ConversationView } from './view.ts'

/** Stores what the gateway has counted. */
export async function readSpent(env: Env, store: ConversationStore): Promise<void> {
  const id = store.read()?.id
  if (id === undefined) return
  const usage = await gatewayGrantsOf(env)
    .usage(id)
    // Without a grant nothing was spent yet.
    .catch(() => undefined)
  // It may have been deleted meanwhile.
  if (usage !== undefined && store.read() !== undefined) store.update({ spent: toSpent(usage) })
}

/** Updates the list of the owner's account. */
export async function reportConversation(
  env: Env,
  store: ConversationStore,
  view: () => ConversationView,
): Promise<void> {
  await readSpent(env, store)
  const owner = store.read()?.owner
  if (owner === undefined) return
  unwrap(await env.ACCOUNT.get(env.ACCOUNT.idFromName(owner)).reportConversation(view()))
}
