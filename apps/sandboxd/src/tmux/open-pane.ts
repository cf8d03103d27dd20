import { openSync } from 'node:fs'
import { closeFd, ioctlValue, O_NOCTTY, O_NONBLOCK, O_RDWR } from '../processes/linux/libc.ts'
import type { AsUser } from '../processes/run-as.ts'
import type { PaneProcess } from './pane-process.ts'

/** `tcflow(3)`: suspends and resumes the output of a terminal. */
const TCXONC = 0x540a
const TCOOFF = 0
const TCOON = 1

/**
 * A pane that sessions show. While one of them is paused, the pane's terminal is suspended, so its programs block as on a
 * terminal without a reader. tmux's own pause would drop output.
 */
export class OpenPane {
  readonly #processes = new Set<PaneProcess>()
  readonly #paused = new Set<PaneProcess>()
  /** Undefined when the terminal cannot be opened; then nothing is suspended. */
  #terminalFd: number | undefined

  /** `path` comes from the tmux server, which the sandbox's user controls. */
  constructor(path: string, asUser: AsUser) {
    if (!/^\/dev\/pts\/\d+$/.test(path)) return
    try {
      this.#terminalFd = asUser(() => openSync(path, O_RDWR | O_NOCTTY | O_NONBLOCK))
    } catch {
      // The pane has just ended.
    }
  }

  get isUnused(): boolean {
    return this.#processes.size === 0
  }

  add(process: PaneProcess): void {
    this.#processes.add(process)
  }

  remove(process: PaneProcess): void {
    this.setPaused(process, false)
    this.#processes.delete(process)
    if (!this.isUnused || this.#terminalFd === undefined) return
    closeFd(this.#terminalFd)
    this.#terminalFd = undefined
  }

  setPaused(process: PaneProcess, isPaused: boolean): void {
    const wasSuspended = this.#paused.size > 0
    if (isPaused) this.#paused.add(process)
    else this.#paused.delete(process)
    const isSuspended = this.#paused.size > 0
    if (isSuspended === wasSuspended || this.#terminalFd === undefined) return
    ioctlValue(this.#terminalFd, TCXONC, isSuspended ? TCOOFF : TCOON)
  }

  /** Every process; safe while they end. */
  all(): readonly PaneProcess[] {
    return [...this.#processes]
  }
}
