import { WebLinksAddon } from '@xterm/addon-web-links'
import type { IBufferRange, Terminal } from '@xterm/xterm'
import { type FilePlace, fileLinks, readLine } from './file-links.ts'
import { type DoubtfulLink, isDoubtful } from './link-doubt.ts'
import { LinkLine } from './link-line.ts'
import { printable } from './printable.ts'
import { webAddress } from './web-address.ts'

const MAX_TEXT_CHARS = 500

export interface LinkEvents {
  /** Whether anybody opens files at present; else paths are text. */
  readonly opensFiles: () => boolean
  readonly onOpenFile: (place: FilePlace) => void
  readonly confirmLink: (link: DoubtfulLink) => Promise<boolean>
}

/** Asks in the simplest way that a browser has. */
export function askInBrowser({ text, address }: DoubtfulLink): Promise<boolean> {
  return Promise.resolve(confirm(`Link text:\n${text}\n\nOpens:\n${address}\n\nOpen this link?`))
}

function open(address: string): void {
  window.open(address, '_blank', 'noopener,noreferrer')
}

/** What stands where a link is, up to the spaces around it: its text may go on in the next row. */
function textAt({ buffer }: Terminal, { start, end }: IBufferRange): string {
  const { text, places } = readLine(buffer.active, start.y - 1)
  const isWithin = (at: number): boolean => {
    const place = places[at]
    return place !== undefined && place.y === start.y && place.from >= start.x && place.to <= end.x
  }
  const within = [...places.keys()].filter(isWithin)
  const [first = 0, last = 0] = [within[0], within.at(-1)]
  const before = /\S*$/.exec(text.slice(0, first))?.[0] ?? ''
  const after = /^\S*/.exec(text.slice(last + 1))?.[0] ?? ''
  return before + text.slice(first, last + 1) + after
}

/**
 * Links in a terminal: addresses, paths, and what programs mark as links. They open with Ctrl or Cmd and a click, since a click alone is
 * for the terminal, and with a tap. Where they lead is shown first.
 */
export class Links {
  readonly #terminal: Terminal
  readonly #events: LinkEvents
  readonly #line = new LinkLine()
  #isTouch = false

  constructor(terminal: Terminal, events: LinkEvents) {
    this.#terminal = terminal
    this.#events = events
    const leave = (): void => this.#line.hide()
    const hover = (event: MouseEvent, text: string): void => this.#show(event, webAddress(text) ?? text)
    terminal.options.linkHandler = {
      hover,
      leave,
      allowNonHttpProtocols: false,
      activate: (event, text, range) => void this.#openMarked(event, text, range),
    }
    const activate = (event: MouseEvent, text: string): void => this.#openWritten(event, text)
    terminal.loadAddon(new WebLinksAddon(activate, { hover, leave }))
    const openFile = (event: MouseEvent, place: FilePlace): void => {
      if (this.#isMeant(event)) events.onOpenFile(place)
    }
    const paths = {
      opensFiles: events.opensFiles,
      activate: openFile,
      hover: (event: MouseEvent, text: string) => this.#show(event, text),
      leave,
    }
    terminal.registerLinkProvider(fileLinks(terminal, paths))
  }

  /** Learns from the terminal's element, once it has one, whether it is clicked or tapped. */
  watch(): void {
    const learn = ({ pointerType }: PointerEvent): void => {
      this.#isTouch = pointerType === 'touch'
    }
    this.#terminal.element?.addEventListener('pointerdown', learn, { capture: true })
  }

  #isMeant(event: MouseEvent): boolean {
    return event.ctrlKey || event.metaKey || this.#isTouch
  }

  #show(event: MouseEvent, target: string): void {
    const { element } = this.#terminal
    if (element === undefined || this.#isTouch) return
    const keys = /Mac|iP(ad|hone)/.test(navigator.platform) ? '⌘ click' : 'Ctrl+click'
    this.#line.show(element, `${keys} opens ${printable(target, MAX_TEXT_CHARS)}`, event.clientY)
  }

  #openWritten(event: MouseEvent, text: string): void {
    const address = webAddress(text)
    if (address !== undefined && this.#isMeant(event)) open(address)
  }

  async #openMarked(event: MouseEvent, target: string, range: IBufferRange): Promise<void> {
    const address = webAddress(target)
    if (address === undefined || !this.#isMeant(event)) return
    const text = textAt(this.#terminal, range)
    const link = { text: printable(text, MAX_TEXT_CHARS), address: printable(address, address.length) }
    if (isDoubtful(text, address, !this.#isTouch) && !(await this.#events.confirmLink(link))) return
    open(address)
  }
}
