import { sandboxIdOf } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import { LOCAL_ACCOUNT } from '../auth/local-identity.ts'
import type { Env } from '../env.ts'
import { unwrap } from '../outcome.ts'
import { runtimeOf } from '../runtime.ts'
import { type HeldGrant, sandboxOfGrant } from './grants.ts'
import type { SandboxCall } from './call.ts'
import { noSuchSandbox, noSuchSession, sharedUnderName } from './missing.ts'
import type { SandboxSettings, SandboxView } from './record.ts'
import type { IdMint } from './sandbox-id.ts'
import type { SandboxRef } from './sandbox-name.ts'

/** Finds the object of a sandbox that a request names. A name means one of the caller's own; others are meant by their ids. */
export class Directory {
  readonly #env: Env
  readonly #mint: IdMint

  constructor(env: Env, mint: IdMint) {
    this.#env = env
    this.#mint = mint
  }

  /**
   * The id; throws `sandbox_not_found` without touching an object when it was not minted here, and with the ids to use when what
   * has this name is shared with the account.
   */
  async resolve(account: string, ref: SandboxRef): Promise<string> {
    const id = ref.by === 'id' ? ref.id : unwrap(await this.account(account).find(ref.name))
    if (id !== null && (await this.#mint.isMinted(id))) return id
    const shared = ref.by === 'id' ? [] : await this.sharedUnder(account, ref.name)
    throw ref.by === 'id' || shared.length === 0 ? noSuchSandbox() : sharedUnderName(ref.name, shared)
  }

  /** Sandboxes of others that an account may see and that have this name, each once. */
  async sharedUnder(account: string, name: string): Promise<readonly HeldGrant[]> {
    const known = unwrap(await this.account(account).shared())
    // Only of a sandbox that is shared as a whole its name is told.
    const named = known.filter(({ sandboxName }) => sandboxName === name)
    const checked = await Promise.all(named.map((held) => this.#check(account, held)))
    const held = checked.filter((one) => one !== undefined)
    return [...new Map(held.map((one) => [one.sandbox, one])).values()]
  }

  /** The sandbox that a session is in; an invented id is `session_not_found`, as one that is not yours. */
  async ofSession(session: string): Promise<string> {
    const id = sandboxIdOf(session)
    if (id === undefined || !(await this.#mint.isMinted(id))) throw noSuchSession()
    return id
  }

  /** Makes a sandbox under a name; with `reuse`, one that has the name already will do. */
  async create(
    call: SandboxCall,
    name: string,
    settings: SandboxSettings,
    reuse: boolean,
  ): Promise<SandboxView> {
    const account = call.identity
    // It is a folder of the machine's user, whoever else can sign in here.
    if (runtimeOf(this.#env).config.workspaceMode === 'local' && account !== LOCAL_ACCOUNT)
      throw new SandwireError(
        'forbidden',
        "Cannot make a sandbox: this server serves a folder of its owner's",
      )
    const minted = await this.#mint.mintSandbox()
    const { id, isNew } = unwrap(await this.account(account).claim(name, minted))
    if (!isNew && !reuse) throw new SandwireError('name_taken', 'Another sandbox has this name')
    // Also for a name that exists: an earlier attempt may have broken off between the two objects.
    return unwrap(await this.sandbox(id).create({ id, owner: account, name, settings }, call))
  }

  /** What others share with an account right now; what its index knows of and is no more is dropped from it. */
  async sharedWith(account: string): Promise<readonly HeldGrant[]> {
    const known = unwrap(await this.account(account).shared())
    const checked = await Promise.all(known.map((held) => this.#check(account, held)))
    return checked.filter((held) => held !== undefined)
  }

  async #check(account: string, { grant }: HeldGrant): Promise<HeldGrant | undefined> {
    const sandbox = sandboxOfGrant(grant)
    const held = sandbox === undefined ? null : unwrap(await this.sandbox(sandbox).heldGrant(account, grant))
    if (held === null) unwrap(await this.account(account).forgetShared(grant))
    return held ?? undefined
  }

  sandbox(id: string) {
    return this.#env.SANDBOX.get(this.#env.SANDBOX.idFromName(id))
  }

  account(account: string) {
    return this.#env.ACCOUNT.get(this.#env.ACCOUNT.idFromName(account))
  }
}
