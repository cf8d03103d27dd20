import type { ServerSession, Snapshot } from '@sandwire/protocol'
import type { RemoteScreen } from './remote-screen.ts'
import type { ScreenRenderer } from './screen-renderer.ts'

/** Bytes on their way to the renderer; a program that writes faster than it parses overtakes it. */
const MAX_IN_FLIGHT_BYTES = 2 * 1024 * 1024

/**
 * The screen of one terminal session, built only when somebody needs it: on request from the log, or, before the log
 * loses bytes, by feeding them to the renderer first. Sessions whose whole output is in the log cost nothing.
 */
export class ScreenModel {
  readonly #session: ServerSession
  readonly #renderer: ScreenRenderer
  #screen: RemoteScreen | undefined
  /** Output up to here was given to the screen. */
  #fed = 0
  #inFlight = 0
  /** The log lost bytes that were never fed. From then on screens are drawn from what the log has when they are asked for. */
  #isOvertaken = false
  /** Serial number of the last resize the screen knows; one may come at an offset that was fed before. */
  #resizeSerial = 0
  /** Screens asked for and not answered. */
  #rendering = 0

  constructor(session: ServerSession, renderer: ScreenRenderer) {
    this.#session = session
    this.#renderer = renderer
  }

  /** Called after output was logged: feeds what the log is about to lose. */
  outputArrived(): void {
    const { log } = this.#session
    if (this.#isOvertaken || log.end - this.#known < log.limitBytes >> 1) return
    if (this.#inFlight < MAX_IN_FLIGHT_BYTES) {
      this.#feed()
      return
    }
    // Parsing a flood that cannot be kept up with would only take the processor from it.
    this.#isOvertaken = true
    this.#close()
  }

  /** The screen at the end of the log. */
  async render(): Promise<Snapshot> {
    const screen = this.#feed()
    const at = this.#fed
    const isExact = !this.#isOvertaken
    const { cols, rows } = this.#session.resizes.sizeAt(at)
    this.#rendering += 1
    const data = await screen.render()
    this.#rendering -= 1
    // Such a model can be built again from the log when it is needed.
    const isRebuildable = this.#session.log.start === 0 || this.#isOvertaken
    if (isRebuildable && this.#rendering === 0) this.#close()
    return { at, cols, rows, data: data ?? new Uint8Array(0), exact: isExact && data !== undefined }
  }

  dispose(): void {
    this.#close()
  }

  /** Output up to here is on a screen. */
  get #known(): number {
    return this.#screen === undefined || this.#screen.isOver ? 0 : this.#fed
  }

  #close(): void {
    this.#screen?.close()
    this.#screen = undefined
  }

  /** A screen that has nothing yet, where there is none or it was lost. */
  #open(): RemoteScreen {
    const { serial, cols, rows } = this.#session.resizes.sizeAt(0)
    this.#resizeSerial = serial
    this.#fed = 0
    return this.#renderer.open(cols, rows)
  }

  /** Gives the screen all that the log has and it has not. */
  #feed(): RemoteScreen {
    const { log, resizes } = this.#session
    const screen = this.#screen === undefined || this.#screen.isOver ? this.#open() : this.#screen
    this.#screen = screen
    if (this.#fed < log.start) {
      this.#isOvertaken = true
      this.#fed = log.start
    }
    let resize = resizes.after(this.#resizeSerial)
    while (resize !== undefined) {
      this.#feedUpTo(screen, resize.at)
      this.#resizeSerial = resize.serial
      screen.resize(resize.cols, resize.rows)
      resize = resizes.after(this.#resizeSerial)
    }
    this.#feedUpTo(screen, log.end)
    return screen
  }

  /** In one piece: the longer a flood of text is, the less of it has to be parsed. */
  #feedUpTo(screen: RemoteScreen, end: number): void {
    const { log } = this.#session
    const start = this.#fed
    const bytes = new Uint8Array(Math.max(0, end - start))
    while (this.#fed < end) {
      const slice = log.read(this.#fed, end - this.#fed)
      if (slice === undefined) break
      bytes.set(slice.bytes, this.#fed - start)
      this.#fed = slice.end
    }
    const fed = this.#fed - start
    if (fed === 0) return
    this.#inFlight += fed
    void screen.feed(bytes.subarray(0, fed)).then(() => {
      this.#inFlight -= fed
    })
  }
}
