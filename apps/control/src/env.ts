import type { AccountObject } from './account/object.ts'
import type * as main from './index.ts'
import type { RateLimit } from './http/rate-limits.ts'
import type { SandboxObject } from './sandbox/object.ts'

/** What the worker is given by whoever runs it. */
export interface Env {
  /** One object per sandbox, named by its id. */
  readonly SANDBOX: DurableObjectNamespace<SandboxObject>
  /** One object per account, named by its identity. */
  readonly ACCOUNT: DurableObjectNamespace<AccountObject>
  /** The host API, reachable by nobody else; absent where there is no host. */
  readonly HOST?: Fetcher
  /** Where sandboxes with a list of hosts reach the web, where the runtime has no network of its own. */
  readonly OUTSIDE?: Fetcher
  /** Sandboxes of this machine, by the slots of the host API's addresses. */
  readonly [slot: `SLOT_${number}`]: Fetcher | undefined
  /** The way to issuers, where the runtime has no network of its own; absent: it has one. */
  readonly ISSUERS?: Fetcher
  /** Signs the tokens of the operator's own services; absent: there are none. */
  readonly JWT_SECRET?: string
  /** The operator's one token for the API; absent: there is none. */
  readonly API_TOKEN?: string
  /** Counts attaches per network address for all isolates; absent: each isolate counts its own. */
  readonly RATE_LIMIT?: RateLimit
  /** The files of the workbench; absent: it is not served here. */
  readonly ASSETS?: Fetcher
  /** Settings, JSON. */
  readonly SANDWIRE_CONFIG: string
  /** Ed25519 private key, PKCS8 in base64: signs what control asks of sandboxes. */
  readonly SANDWIRE_SIGNING_KEY: string
  /** 32 random bytes in base64: ends every sandbox id with an HMAC. */
  readonly SANDWIRE_ID_KEY: string
  /** Keys of session tokens, `KID:BASE64,KID:BASE64` as `decodeSessionKeys` reads them; absent: there are no such tokens. */
  readonly SESSION_TOKEN_SECRET?: string
}

declare global {
  namespace Cloudflare {
    /** What `ctx.exports` leads to: the entrypoints and objects of this worker. */
    interface GlobalProps {
      mainModule: typeof main
    }
  }
}
