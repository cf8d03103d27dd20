import { createStore, type Store } from '@sandwire/client'
import { DARK, type FilePlace, LIGHT, type Look, type RiskyPaste, TerminalController } from '@sandwire/react'
import { ticketForTerminal } from './ticket-for-terminal.ts'
import { changeView, type View } from '../layout/layout.ts'
import type { Settings } from '../state/settings.ts'
import type { Workbench } from '../state/workbench.ts'

type TerminalPlace = Extract<View, { kind: 'terminal' }>

/** How long a shell waits for a page that was closed: a night. */
const KEEP_SECONDS = 12 * 60 * 60

/** A question about a paste, until it is answered. */
export interface PasteQuestion {
  readonly paste: RiskyPaste
  readonly answer: (isYes: boolean) => void
}

export interface ShelfEvents {
  readonly openFile: (sandbox: string, place: FilePlace) => void
  readonly isDark: () => boolean
}

/** The terminals of all panes. They live as long as their pane, not as long as what draws it. */
export class TerminalShelf {
  readonly #workbench: Workbench
  readonly #events: ShelfEvents
  readonly #terminals = new Map<string, TerminalController>()
  readonly #question = createStore<PasteQuestion | undefined>(undefined)

  constructor(workbench: Workbench, events: ShelfEvents) {
    this.#workbench = workbench
    this.#events = events
    workbench.layout.subscribe(({ views }) => this.#drop(new Set(Object.keys(views))))
    workbench.settings.subscribe(() => this.redraw())
  }

  get question(): Store<PasteQuestion | undefined> {
    return this.#question
  }

  /** The terminal of a pane, made when it is first asked for. */
  of(viewId: string, place: TerminalPlace): TerminalController {
    const known = this.#terminals.get(viewId)
    if (known !== undefined) return known
    const controller = this.#create(place)
    this.#terminals.set(viewId, controller)
    controller.state.subscribe(({ session }) => {
      if (session !== undefined) this.#remember(viewId, session)
    })
    return controller
  }

  find(viewId: string): TerminalController | undefined {
    return this.#terminals.get(viewId)
  }

  /** Brings every terminal up to what was chosen. */
  redraw(): void {
    for (const terminal of this.#terminals.values()) terminal.surface.setLook(this.#look())
  }

  #create({ sandbox, session, cwd }: TerminalPlace): TerminalController {
    const settings = this.#workbench.settings
    const start = { keepSeconds: KEEP_SECONDS, ...(cwd === undefined ? {} : { cwd }) }
    return new TerminalController({
      url: new URL('/attach', location.origin),
      request: { sandbox, ...(session === undefined ? start : { session }) },
      getTicket: ticketForTerminal,
      look: this.#look(),
      get allowsClipboardWrite() {
        return settings.get().allowsClipboardWrite
      },
      get copiesOnSelect() {
        return settings.get().copiesOnSelect
      },
      confirmPaste: (paste) => this.#ask(paste),
      onOpenFile: (place) => this.#events.openFile(sandbox, place),
    })
  }

  #ask(paste: RiskyPaste): Promise<boolean> {
    this.#question.get()?.answer(false)
    return new Promise((resolve) => {
      this.#question.set({
        paste,
        answer: (isYes) => {
          this.#question.set(undefined)
          resolve(isYes)
        },
      })
    })
  }

  #look(): Partial<Look> {
    const { fontSize, fontFamily, screenReader }: Settings = this.#workbench.settings.get()
    return {
      palette: this.#events.isDark() ? DARK : LIGHT,
      ...{ fontSize, screenReader },
      ...(fontFamily === '' ? {} : { fontFamily: `${fontFamily}, monospace` }),
    }
  }

  #remember(viewId: string, session: string): void {
    const view = this.#workbench.layout.get().views[viewId]
    if (view?.kind !== 'terminal' || view.session === session) return
    this.#workbench.changeLayout((layout) => changeView(layout, viewId, (old) => ({ ...old, session })))
  }

  #drop(open: ReadonlySet<string>): void {
    for (const [viewId, terminal] of this.#terminals) {
      if (open.has(viewId)) continue
      this.#terminals.delete(viewId)
      terminal.dispose()
    }
  }
}
