import { AdvisedError } from '../errors/advised-error.ts'
import { Wrong } from '../options/words.ts'
import { mayHaveAsked, type Nearness, nearnessOf } from './nearness.ts'

/** Who wants addresses asked. */
export interface Asker {
  readonly is: 'server' | 'issuer'
  readonly url: string
  /** Somebody said that it may name addresses of a private network. */
  readonly isTrusted: boolean
  /** How to say so. */
  readonly trustHint: string
}

const WHERE: Readonly<Record<Nearness, string>> = {
  thisMachine: 'this machine',
  link: 'the local link',
  private: 'a private network',
  public: 'the Internet',
}

/** Throws unless all these addresses may be asked because somebody elsewhere says so. */
export function checkEndpoints(urls: readonly (string | undefined)[], asker: Asker): void {
  for (const url of urls) {
    if (url === undefined) continue
    const what = `Cannot sign in: the ${asker.is} wants ${new URL(url).host} asked`
    const verdict = mayHaveAsked(url, asker.url)
    if (verdict === 'never')
      throw new AdvisedError(
        'no_issuer',
        `${what}, which is ${WHERE[nearnessOf(url)]}, where it is not itself`,
        'do not sign in there unless you know why it wants that',
      )
    if (verdict === 'needsTrust' && !asker.isTrusted)
      throw new Wrong(`${what}, which is in a private network`, asker.trustHint)
  }
}
