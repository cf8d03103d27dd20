import { StrictMode } from 'react'
import { createRoot, type Root } from 'react-dom/client'
import { Terminal, TerminalController } from '@sandwire/react'

/** What the test calls in the page. */
export interface TerminalPage {
  /** A component that makes its own terminal, in strict mode. */
  showOwn(url: string, cmd: string, args: readonly string[]): void
  /** A component that shows a given one, in strict mode. */
  showGiven(url: string): void
  /** The given one without React. */
  showBare(url: string): void
  hide(): void
  text(): string
  type(text: string): void
  /** Reported events, in order. */
  readonly told: string[]
}

const place = document.createElement('div')
place.style.cssText = 'width: 800px; height: 400px'
document.body.append(place)

let root: Root | undefined
let controller: TerminalController | undefined
const told: string[] = []

function given(url: string): TerminalController {
  controller ??= new TerminalController({ url, request: { cmd: 'sh', keepSeconds: 0 } })
  return controller
}

const page: TerminalPage = {
  told,
  showOwn(url, cmd, args) {
    root = createRoot(place)
    root.render(
      <StrictMode>
        <Terminal
          {...{ url, cmd, args, keepSeconds: 0 }}
          getTicket={() => {
            told.push('ticket')
            return Promise.resolve('none')
          }}
          onState={({ status }) => told.push(status.kind)}
          onExit={({ code, signal }) => told.push(`exit ${code} ${signal}`)}
          onError={({ code }) => told.push(`error ${code}`)}
        />
      </StrictMode>,
    )
  },
  showGiven(url) {
    root = createRoot(place)
    root.render(
      <StrictMode>
        <Terminal controller={given(url)} />
      </StrictMode>,
    )
  },
  showBare(url) {
    given(url).mount(place)
  },
  hide() {
    root?.unmount()
    root = undefined
  },
  text: () => controller?.surface.readText().trimEnd() ?? '',
  type: (text) => controller?.type(text),
}

Object.assign(globalThis, { page })
