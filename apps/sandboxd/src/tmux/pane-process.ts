import { signalNumber } from '@sandwire/protocol'
import type { ProcessEvents, RunningProcess } from '../processes/process.ts'

/** The default end-of-file character of a terminal. */
const VEOF = 4
/** Characters that make the kernel signal the foreground processes of a terminal. */
const SIGNAL_CHARACTERS: Readonly<Record<string, number>> = { SIGINT: 3, SIGQUIT: 28, SIGTSTP: 26 }

export interface PaneDependencies {
  readonly pid: number
  /** Types bytes into the pane; rejects when it is gone. */
  readonly type: (bytes: Uint8Array) => Promise<unknown>
  readonly resize: (cols: number, rows: number) => void
  /** Signals the processes in the foreground of the pane's terminal. */
  readonly kill: (signal: number) => void
  /** Suspends and resumes the pane's terminal. */
  readonly setPaused: (isPaused: boolean) => void
  readonly closed: () => void
}

/** A pane of tmux as the process of a session. Ending the session leaves the pane; the pane's end ends the session. */
export class PaneProcess implements RunningProcess {
  readonly pid: number
  readonly #deps: PaneDependencies
  readonly #events: ProcessEvents
  /** Output that tmux had read already when the pane was paused. */
  #held: Uint8Array[] = []
  /** Output before the first screen is part of that screen. */
  #isDrawn = false
  #isPaused = false
  #hasEnded = false
  #size: readonly [cols: number, rows: number] = [0, 0]

  constructor(deps: PaneDependencies, events: ProcessEvents) {
    this.pid = deps.pid
    this.#deps = deps
    this.#events = events
  }

  /** Draws the screen as it was when tmux replied; the output after it continues from there. */
  draw(screen: Uint8Array): void {
    this.#isDrawn = true
    this.output(screen)
  }

  output(bytes: Uint8Array): void {
    if (this.#hasEnded || !this.#isDrawn || bytes.byteLength === 0) return
    if (this.#isPaused) this.#held.push(bytes)
    else this.#events.output('stdout', bytes)
  }

  /** tmux gave the pane another size. */
  sized(cols: number, rows: number): void {
    if (this.#hasEnded || (cols === this.#size[0] && rows === this.#size[1])) return
    this.#size = [cols, rows]
    this.#events.resized(cols, rows)
  }

  write(chunk: Uint8Array): void {
    if (this.#hasEnded) return
    const settle = (): void => {
      if (!this.#hasEnded) this.#events.inputSettled(chunk.byteLength)
    }
    void this.#deps.type(chunk).then(settle, settle)
  }

  closeInput(): void {
    void this.#deps.type(Uint8Array.of(VEOF)).catch(() => undefined)
  }

  resize(cols: number, rows: number): void {
    if (!this.#hasEnded) this.#deps.resize(cols, rows)
  }

  signal(name: string): void {
    if (this.#hasEnded) return
    const character = SIGNAL_CHARACTERS[name]
    if (character !== undefined) {
      void this.#deps.type(Uint8Array.of(character)).catch(() => undefined)
      return
    }
    const signal = signalNumber(name)
    if (signal !== undefined) this.#deps.kill(signal)
  }

  pause(): void {
    this.#isPaused = true
    this.#deps.setPaused(true)
  }

  resume(): void {
    this.#isPaused = false
    this.#deps.setPaused(false)
    this.#release()
  }

  async terminate(): Promise<void> {
    this.end({ code: 0, signal: null })
  }

  /** The pane or the server is gone, or the session ends. */
  end({ code, signal }: { readonly code: number | null; readonly signal: string | null }): void {
    if (this.#hasEnded) return
    this.#isPaused = false
    this.#release()
    this.#hasEnded = true
    this.#deps.closed()
    this.#events.ended({ code, signal, truncated: false })
  }

  #release(): void {
    for (const bytes of this.#held.splice(0)) this.#events.output('stdout', bytes)
  }
}
