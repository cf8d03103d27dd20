import type { Question } from '@sandwire/agent'

/** What a person has chosen and written as the answer to a question. */
export interface GivenAnswer {
  readonly labels: readonly string[]
  readonly own: string
}

export const NO_ANSWER: GivenAnswer = { labels: [], own: '' }

/** Chooses an option, or not. Without several answers, an option replaces the others and what was written. */
export function choose(
  { allowsMany }: Pick<Question, 'allowsMany'>,
  { labels, own }: GivenAnswer,
  label: string,
  isOn: boolean,
): GivenAnswer {
  if (!allowsMany) return { labels: isOn ? [label] : [], own: '' }
  const others = labels.filter((each) => each !== label)
  return { labels: isOn ? [...others, label] : others, own }
}

export function write(
  { allowsMany }: Pick<Question, 'allowsMany'>,
  { labels }: GivenAnswer,
  own: string,
): GivenAnswer {
  return { labels: allowsMany ? labels : [], own }
}

/** The answer as the agent gets it; empty: there is none. */
export function formatAnswer({ labels, own }: GivenAnswer): string {
  return [...labels, own.trim()].filter((text) => text !== '').join(', ')
}
