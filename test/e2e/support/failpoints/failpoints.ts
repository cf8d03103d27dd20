import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A moment in the work of the host on a request of control, or of an object of control. */
export interface Failpoint {
  /** Method and last part of the path: `PUT` starts, `POST stop` stops, `DELETE` destroys; or one of `OBJECT_STEPS`. */
  readonly call: string
  readonly moment: 'before' | 'after'
}

interface Reached extends Failpoint {
  readonly sandbox: string
}

/** Stops a host at requests of control, and control's objects at their steps, to do something there. */
export class Failpoints implements Disposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'failpoints-'))
  readonly #server: Bun.Server<undefined>
  #armed: { readonly point: Failpoint; readonly act: (sandbox: string) => Promise<void> } | undefined

  constructor() {
    this.#server = Bun.serve({
      unix: join(this.#folder, 'socket'),
      fetch: async (request) => {
        await this.#reach((await request.json()) as Reached)
        return new Response()
      },
    })
  }

  /** Environment of the host. */
  get env(): Readonly<Record<string, string>> {
    return {
      BUN_OPTIONS: `--preload=${join(import.meta.dir, 'preload.ts')}`,
      SANDWIRE_TEST_FAILPOINTS: join(this.#folder, 'socket'),
    }
  }

  /** Calls `act` once, when the host reaches the point; the host waits until it is done. */
  arm(point: Failpoint, act: (sandbox: string) => Promise<void>): void {
    this.#armed = { point, act }
  }

  get isArmed(): boolean {
    return this.#armed !== undefined
  }

  /** True when the point was not reached. */
  disarm(): boolean {
    const wasArmed = this.#armed !== undefined
    this.#armed = undefined
    return wasArmed
  }

  [Symbol.dispose](): void {
    void this.#server.stop(true)
    rmSync(this.#folder, { recursive: true, force: true })
  }

  async #reach({ call, moment, sandbox }: Reached): Promise<void> {
    const armed = this.#armed
    if (armed === undefined || armed.point.call !== call || armed.point.moment !== moment) return
    this.#armed = undefined
    await armed.act(sandbox)
  }
}
