import { sandboxIdOf, sandboxIdOfConversation, sandboxIdOfRun } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import { LOCAL_ACCOUNT } from '../auth/local-identity.ts'
import { defaultSettings } from '../ceilings/ceilings.ts'
import type { Env } from '../env.ts'
import { MACHINE } from '../machine/store.ts'
import { unwrap } from '../outcome.ts'
import { runtimeOf } from '../runtime.ts'
import { type HeldGrant, sandboxOfGrant } from './grants.ts'
import type { SandboxCall } from './call.ts'
import { noSuchConversation, noSuchRun, noSuchSandbox, noSuchSession, sharedUnderName } from './not-found.ts'
import type { SandboxSettings, SandboxView } from './record.ts'
import type { IdMint, SandboxRef } from './sandbox-id.ts'

/** Resolves the sandbox that a request names. Names are those of the caller's own sandboxes; others are named by id. */
export class SandboxLookup {
  readonly #env: Env
  readonly #mint: IdMint

  constructor(env: Env, mint: IdMint) {
    this.#env = env
    this.#mint = mint
  }

  /**
   * The id; throws `sandbox_not_found` without reaching an object when it was not minted here. When a sandbox of this name is
   * shared with the account, the error contains the id to use.
   */
  async resolve(account: string, ref: SandboxRef): Promise<string> {
    const id = ref.by === 'id' ? ref.id : unwrap(await this.account(account).find(ref.name))
    if (id !== null && (await this.#mint.isMinted(id))) return id
    const shared = ref.by === 'id' ? [] : await this.sharedUnder(account, ref.name)
    throw ref.by === 'id' || shared.length === 0 ? noSuchSandbox() : sharedUnderName(ref.name, shared)
  }

  /** Sandboxes of this name that other accounts share with the account, each once. */
  async sharedUnder(account: string, name: string): Promise<readonly HeldGrant[]> {
    const known = unwrap(await this.account(account).heldGrants())
    // Grants on a single session have no sandbox name.
    const named = known.filter(({ sandboxName }) => sandboxName === name)
    const checked = await Promise.all(named.map((held) => this.#check(account, held)))
    const held = checked.filter((one) => one !== undefined)
    return [...new Map(held.map((one) => [one.sandbox, one])).values()]
  }

  /** The sandbox of a session, run or conversation; throws `session_not_found` for an id that was not minted here. */
  async ofSession(session: string): Promise<string> {
    const id = sandboxIdOf(session) ?? sandboxIdOfRun(session) ?? sandboxIdOfConversation(session)
    if (id === undefined || !(await this.#mint.isMinted(id))) throw noSuchSession()
    return id
  }

  /** Settings of a sandbox that an attach creates. */
  get defaultSettings(): SandboxSettings {
    return defaultSettings(runtimeOf(this.#env).ceilings)
  }

  /** Creates a sandbox; with `reuse`, returns the one that has the name already. `newId` was minted before. */
  async create(
    call: SandboxCall,
    name: string,
    settings: SandboxSettings,
    reuse: boolean,
    newId?: string,
  ): Promise<SandboxView> {
    const account = call.identity
    // The folder or sprite belongs to the user of the machine, even if other accounts can sign in.
    if (runtimeOf(this.#env).config.hasOneSandbox && account !== LOCAL_ACCOUNT)
      throw new SandwireError(
        'forbidden',
        'Cannot create a sandbox: this server has one, which belongs to its owner',
      )
    const minted = newId ?? (await this.#mint.mintSandbox())
    const { limits, network, sleepAfterMs } = settings
    const idle =
      sleepAfterMs === undefined ? {} : { idleSeconds: sleepAfterMs === null ? null : sleepAfterMs / 1000 }
    const request = { limits, network, ...idle }
    const { id, isNew } = unwrap(await this.account(account).claim(name, minted, request))
    if (!isNew && !reuse) throw new SandwireError('name_taken', 'A sandbox with this name exists already')
    // Also for an existing name: an earlier attempt may have been interrupted between the two objects.
    return unwrap(await this.sandbox(id).create({ id, owner: account, name, settings }, call))
  }

  /** Grants that an account holds now; revoked ones are removed from its index. */
  async sharedWith(account: string): Promise<readonly HeldGrant[]> {
    const known = unwrap(await this.account(account).heldGrants())
    const checked = await Promise.all(known.map((held) => this.#check(account, held)))
    return checked.filter((held) => held !== undefined)
  }

  async #check(account: string, { grant }: HeldGrant): Promise<HeldGrant | undefined> {
    const sandbox = sandboxOfGrant(grant)
    const held = sandbox === undefined ? null : unwrap(await this.sandbox(sandbox).heldGrant(account, grant))
    if (held === null) unwrap(await this.account(account).removeMissingGrant(grant))
    return held ?? undefined
  }

  sandbox(id: string) {
    return this.#env.SANDBOX.get(this.#env.SANDBOX.idFromName(id))
  }

  /** The sandbox of a run; throws `run_not_found` for an id that was not minted here. */
  async ofRun(run: string): Promise<string> {
    const id = sandboxIdOfRun(run)
    if (id === undefined || !(await this.#mint.isMinted(id))) throw noSuchRun()
    return id
  }

  run(id: string) {
    return this.#env.CLAUDE_SANDBOX.get(this.#env.CLAUDE_SANDBOX.idFromName(id))
  }

  /** The object of a conversation; throws `not_found` for an id that was not minted here. */
  async conversation(id: string) {
    const sandbox = sandboxIdOfConversation(id)
    if (sandbox === undefined || !(await this.#mint.isMinted(sandbox))) throw noSuchConversation()
    return this.#env.CONVERSATION.get(this.#env.CONVERSATION.idFromName(id))
  }

  machine() {
    return this.#env.MACHINE.get(this.#env.MACHINE.idFromName(MACHINE))
  }

  account(account: string) {
    return this.#env.ACCOUNT.get(this.#env.ACCOUNT.idFromName(account))
  }
}
