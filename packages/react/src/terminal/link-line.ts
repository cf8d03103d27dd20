/** Colors of their own: what is below can be of any. */
const LOOK = {
  position: 'absolute',
  left: '0',
  zIndex: '10',
  maxWidth: '100%',
  boxSizing: 'border-box',
  padding: '3px 8px',
  background: '#2b2f38',
  color: '#f2f4f8',
  pointerEvents: 'none',
  font: '12px/1.45 system-ui, sans-serif',
  overflow: 'hidden',
  whiteSpace: 'nowrap',
  textOverflow: 'ellipsis',
}
/** So near to the end of a terminal that the line would lie on what is pointed at. */
const NEAR_PX = 60

/** A line in the corner of a terminal that says where a link leads while it is pointed at, as browsers do. */
export class LinkLine {
  readonly #element: HTMLElement

  constructor() {
    this.#element = document.createElement('div')
    this.#element.className = 'sandwire-link-line'
    Object.assign(this.#element.style, LOOK)
  }

  show(terminal: HTMLElement, text: string, pointerY: number): void {
    const isNearEnd = terminal.getBoundingClientRect().bottom - pointerY < NEAR_PX
    Object.assign(this.#element.style, isNearEnd ? { top: '0', bottom: '' } : { top: '', bottom: '0' })
    this.#element.textContent = text
    terminal.append(this.#element)
  }

  hide(): void {
    this.#element.remove()
  }
}
