import type { SandboxStatus, StartSpec } from '@sandwire/internal-api'
import type { StopReason } from '@sandwire/protocol'

/** Makes and keeps the sandboxes of this machine. Every method may be called at any time, by several at once. */
export interface SandboxKeeper {
  /** How sandboxes are isolated from this machine. */
  readonly isolation: 'bubblewrap' | 'none'
  /** Starts the sandbox unless it runs; concurrent calls for one id share one start. Throws `sandbox_failed`. */
  start(spec: StartSpec): Promise<SandboxStatus>
  status(id: string): Promise<SandboxStatus>
  list(): Promise<readonly SandboxStatus[]>
  /** Ends every process of the sandbox; its files stay. Its log says why, and so does its state, unless it was asked for. */
  stop(id: string, reason?: StopReason): Promise<SandboxStatus>
  /** Ends and removes everything of it. Nothing to do is no error. */
  destroy(id: string): Promise<void>
  /** Cuts every connection into the sandbox; its processes run on. */
  sever(id: string): Promise<void>
  /** The last bytes of the sandbox's log, cut at a line. */
  readLog(id: string, maxBytes: number): Promise<string>
  /** Finds the sandboxes that outlived the last host and tells them that they are wanted. */
  adopt(): Promise<readonly SandboxStatus[]>
  /** Says that a sandbox is still wanted; its supervisor ends it when nobody does for ten minutes. */
  claim(id: string): Promise<void>
  /** Lets go of the sandboxes. With `stop` it ends them first. */
  close(options: { readonly stop: boolean }): Promise<void>
}
