import type { Network } from './sandboxes.ts'
import { requestJson } from './request.ts'

/** Use of one resource by the account; `limit` is null without a ceiling. */
export interface ResourceUse {
  readonly used: number
  readonly limit: number | null
}

/** What the account uses, against its ceilings. Limits are missing where the server does not set those of sandboxes. */
export interface Usage {
  readonly account: {
    readonly sandboxes: ResourceUse
    readonly running: ResourceUse
    readonly sessions: ResourceUse
    readonly memoryBytes?: ResourceUse
    readonly milliCpus?: ResourceUse
    readonly pids?: ResourceUse
    readonly diskBytes?: ResourceUse
    readonly storedBytes?: ResourceUse
  }
  readonly sandbox: { readonly networks: readonly Network[] }
}

export function readUsage(signal?: AbortSignal): Promise<Usage> {
  return requestJson<Usage>('/api/account/usage', signal === undefined ? {} : { signal })
}
