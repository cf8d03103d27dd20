import type { AccountObject } from './account/object.ts'
import type { ConversationObject } from './conversation/object.ts'
import type { GatewayGrantObject } from './credentials/grant-object.ts'
import type * as main from './index.ts'
import type { RateLimit } from './http/rate-limits.ts'
import type { MachineObject } from './machine/object.ts'
import type { RunObject } from './run/object.ts'
import type { SandboxObject } from './sandbox/object.ts'

/** Bindings of the worker. */
export interface Env {
  /** One object per sandbox, named by its id. */
  readonly SANDBOX: DurableObjectNamespace<SandboxObject>
  /** One object per account, named by its id. */
  readonly ACCOUNT: DurableObjectNamespace<AccountObject>
  /** The one object of the whole server. */
  readonly MACHINE: DurableObjectNamespace<MachineObject>
  /** One object per run, named by its id: what the run may request of the credential gateway. */
  readonly GATEWAY_GRANT: DurableObjectNamespace<GatewayGrantObject>
  /** One object per run, named by its id. The name of the binding is what other Workers expect. */
  readonly CLAUDE_SANDBOX: DurableObjectNamespace<RunObject>
  /** One object per conversation, named by its id. */
  readonly CONVERSATION: DurableObjectNamespace<ConversationObject>
  /** The operator's API, to which messages of conversations are sent; absent: they are not. */
  readonly API_BASE_URL?: string
  /** Authenticates control to that API. */
  readonly INTERNAL_API_TOKEN?: string
  /** The host API; absent without a host. */
  readonly HOST?: Fetcher
  /** The host's store of versions, a folder. */
  readonly STORE?: Fetcher
  /** The R2 bucket of versions, on Cloudflare. */
  readonly FILES?: R2Bucket
  /** Network to an S3-compatible store of versions. */
  readonly S3?: Fetcher
  readonly AWS_ACCESS_KEY_ID?: string
  readonly AWS_SECRET_ACCESS_KEY?: string
  /** Network of sandboxes with an allow list, if the runtime has none of its own. */
  readonly OUTSIDE?: Fetcher
  /** Sandboxes of this machine, by slot. */
  readonly [slot: `SLOT_${number}`]: Fetcher | undefined
  /** Network to issuers, if the runtime has none of its own. */
  readonly ISSUERS?: Fetcher
  /** Network to model APIs and git servers, if the runtime has none of its own. */
  readonly UPSTREAMS?: Fetcher
  /** Network to the Sprites API, if the runtime has none of its own. */
  readonly SPRITES?: Fetcher
  /** Token of the Sprites API. */
  readonly SPRITES_API_TOKEN?: string
  /** Signing secret of service tokens; absent: none are accepted. */
  readonly JWT_SECRET?: string
  /** The operator's API token; absent: none is accepted. */
  readonly API_TOKEN?: string
  /** Rate limiter by network address; absent: each isolate counts its own. */
  readonly RATE_LIMIT?: RateLimit
  /** The files of the workbench; absent: it is not served. */
  readonly ASSETS?: Fetcher
  /** Settings, JSON. */
  readonly SANDWIRE_CONFIG: string
  /** Ed25519 private key, PKCS8 in base64: signs requests to sandboxes. */
  readonly SANDWIRE_SIGNING_KEY: string
  /** 32 random bytes in base64: HMAC key of sandbox and account ids. */
  readonly SANDWIRE_ID_KEY: string
  /** Keys of session tokens, `KID:BASE64,KID:BASE64` for `decodeSessionKeys`; absent: sessions have no tokens. */
  readonly SESSION_TOKEN_SECRET?: string
}

declare global {
  namespace Cloudflare {
    /** The type of `ctx.exports`. */
    interface GlobalProps {
      mainModule: typeof main
    }
  }
}
