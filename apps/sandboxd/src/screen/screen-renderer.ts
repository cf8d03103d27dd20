import type { ScreenReply, ScreenRequest } from './screen-protocol.ts'
import { RemoteScreen } from './remote-screen.ts'

/** Renders terminal screens in a thread of its own, started when first needed. */
export class ScreenRenderer {
  readonly #createWorker: () => Worker
  #worker: Worker | undefined
  #minted = 0
  readonly #screens = new Map<number, RemoteScreen>()

  constructor(createWorker: () => Worker) {
    this.#createWorker = createWorker
  }

  open(cols: number, rows: number): RemoteScreen {
    const worker = (this.#worker ??= this.#start())
    this.#minted += 1
    const key = this.#minted
    const post = (request: ScreenRequest): void =>
      worker.postMessage(request, request.kind === 'feed' ? [request.bytes.buffer] : [])
    const screen = new RemoteScreen({ key, post, closed: () => this.#screens.delete(key) })
    this.#screens.set(key, screen)
    post({ kind: 'open', screen: key, cols, rows })
    return screen
  }

  #start(): Worker {
    const worker = this.#createWorker()
    worker.addEventListener('message', ({ data }: MessageEvent<ScreenReply>) => {
      this.#screens.get(data.screen)?.answered(data)
    })
    // A renderer that cannot run leaves sessions without screens, not without output.
    worker.addEventListener('error', () => {
      this.#worker = undefined
      for (const screen of Array.from(this.#screens.values())) screen.lost()
    })
    return worker
  }
}
