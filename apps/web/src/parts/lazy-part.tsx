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

/** Which try at drawing it is: in another one, a part that failed is loaded again. */
const PartAttempt = createContext<object>({})

interface Loading<Props> {
  readonly attempt: object
  readonly Body: ComponentType<Props>
  hasFailed: boolean
}

/** A part of the page that is loaded when it is first drawn, and again after that failed, once its boundary tries again. */
export function lazyPart<Props extends object>(
  load: () => Promise<ComponentType<Props>>,
): ComponentType<Props> {
  // React keeps the outcome of a lazy component for good.
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
  /** What was thrown in the last try. */
  readonly failure: { readonly caught: unknown } | undefined
  /** Another object for every try. */
  readonly attempt: object
}

function partErrorText(caught: unknown): string {
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
