import {
  Component,
  type ComponentType,
  createContext,
  lazy,
  type ReactElement,
  type ReactNode,
  use,
} from 'react'
import { shellTexts } from '../texts/shell.ts'
import { PartError } from './import-fetched.ts'

/** Identity of the current rendering attempt; a failed part is loaded again in the next one. */
const PartAttempt = createContext<object>({})

interface Loading<Props> {
  readonly attempt: object
  readonly Body: ComponentType<Props>
  hasFailed: boolean
}

/** A component that is loaded on first use, and again when its boundary retries after a failure. */
export function lazyPart<Props extends object>(
  load: () => Promise<ComponentType<Props>>,
): ComponentType<Props> {
  // React caches the outcome of a lazy component forever.
  let loading: Loading<Props> | undefined
  const begin = (attempt: object): Loading<Props> => {
    const begun: Loading<Props> = {
      attempt,
      hasFailed: false,
      Body: lazy(async () => {
        try {
          return { default: await load() }
        } catch (caught) {
          begun.hasFailed = true
          throw caught
        }
      }),
    }
    return begun
  }
  return function Part(props: Props): ReactElement {
    const attempt = use(PartAttempt)
    if (loading === undefined || (loading.hasFailed && loading.attempt !== attempt)) loading = begin(attempt)
    const { Body } = loading
    return <Body {...props} />
  }
}

interface State {
  /** The error of the last attempt. */
  readonly failure: { readonly caught: unknown } | undefined
  /** A new object for every attempt. */
  readonly attempt: object
}

function partErrorText(caught: unknown): string {
  if (!(caught instanceof PartError)) return shellTexts.boundary.broken
  switch (caught.reason) {
    case 'unreachable':
      return shellTexts.boundary.unreachable
    case 'gone':
      return shellTexts.boundary.gone
  }
}

/**
 * Isolates a part of the page that fails to load or render. It retries on demand, and by itself when the browser
 * comes online. After an update of the server only a reload helps, which restores what is open.
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
    if (caught instanceof PartError && caught.reason === 'unreachable') this.#tryAgain()
  }

  readonly #tryAgain = (): void => this.setState({ failure: undefined, attempt: {} })

  override render(): ReactNode {
    const { failure, attempt } = this.state
    if (failure === undefined) return <PartAttempt value={attempt}>{this.props.children}</PartAttempt>
    return (
      <div className="empty" role="alert">
        <p>{partErrorText(failure.caught)}</p>
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
