import { Component, type ReactNode } from 'react'
import { PartError } from '../parts/import-fetched.ts'
import { PartTry } from '../parts/lazy-part.tsx'
import { shellTexts } from '../texts/shell.ts'

interface State {
  /** What was thrown in the last try. */
  readonly failure: { readonly caught: unknown } | undefined
  /** Another object for every try. */
  readonly attempt: object
}

function sayWhy(caught: unknown): string {
  if (!(caught instanceof PartError)) return shellTexts.boundary.broken
  switch (caught.why) {
    case 'unreachable':
      return shellTexts.boundary.unreachable
    case 'gone':
      return shellTexts.boundary.gone
  }
}

/**
 * Keeps a part of the page that cannot be drawn from taking the others with it. It is tried again when somebody wishes, and by itself
 * when there is a connection again. One of a version that is no longer served comes with a reload: what is open comes back.
 */
export class PartBoundary extends Component<{ readonly children: ReactNode }, State> {
  override state: State = { failure: undefined, attempt: {} }

  static getDerivedStateFromError(caught: unknown): Partial<State> {
    return { failure: { caught } }
  }

  override componentDidMount(): void {
    window.addEventListener('online', this.#online)
  }

  override componentWillUnmount(): void {
    window.removeEventListener('online', this.#online)
  }

  readonly #online = (): void => {
    const caught = this.state.failure?.caught
    if (caught instanceof PartError && caught.why === 'unreachable') this.#tryAgain()
  }

  readonly #tryAgain = (): void => this.setState({ failure: undefined, attempt: {} })

  override render(): ReactNode {
    const { failure, attempt } = this.state
    if (failure === undefined) return <PartTry value={attempt}>{this.props.children}</PartTry>
    return (
      <div className="empty" role="alert">
        <p>{sayWhy(failure.caught)}</p>
        <button type="button" onClick={this.#tryAgain}>
          {shellTexts.boundary.retry}
        </button>
        <button type="button" onClick={() => location.reload()}>
          {shellTexts.boundary.reload}
        </button>
      </div>
    )
  }
}
