import { type ComponentType, createContext, lazy, type ReactElement, use } from 'react'

/** Which try at drawing it is: in another one, a part that failed is loaded again. */
export const PartTry = createContext<object>({})

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
    const attempt = use(PartTry)
    if (loading === undefined || (loading.hasFailed && loading.attempt !== attempt)) loading = begin(attempt)
    const { Body } = loading
    return <Body {...props} />
  }
}
