import { type Outcome, unwrap } from '../outcome.ts'
import { AddressLimit, type AddressLimitSettings, type RateLimit } from './address-limit.ts'

export interface AttachLimitDependencies {
  readonly perAddress: AddressLimitSettings
  /** The platform's own counter; absent: this isolate counts. */
  readonly rateLimit: RateLimit | undefined
  /** Counts one for an account, wherever it comes from. */
  readonly takeOfAccount: (account: string) => Promise<Outcome<void>>
  readonly nowMs: () => number
}

/** How often one may attach: from one network address, and by one account. */
export class AttachLimits {
  readonly #deps: AttachLimitDependencies
  readonly #addresses: AddressLimit

  constructor(deps: AttachLimitDependencies) {
    this.#deps = deps
    this.#addresses = new AddressLimit(deps.perAddress)
  }

  /**
   * Counts one; throws when it is too many. One that is refused for one reason uses up nothing of the other, as far as can be
   * known before: people share addresses, and a platform that counts cannot be asked without counting.
   */
  async admit({ identity, address }: { readonly identity: string; readonly address: string }): Promise<void> {
    const { rateLimit, takeOfAccount, nowMs } = this.#deps
    const outlook = rateLimit === undefined ? this.#addresses.outlook(address, nowMs()) : undefined
    if (outlook !== undefined) throw outlook
    unwrap(await takeOfAccount(identity))
    const refusal =
      rateLimit === undefined
        ? this.#addresses.refusal(address, nowMs())
        : await this.#addresses.refusalBy(rateLimit, address)
    if (refusal !== undefined) throw refusal
  }
}
