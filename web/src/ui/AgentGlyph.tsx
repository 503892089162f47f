import type { CSSProperties } from 'react'
import { agentHue, agentLetters, agentShape, type Shape } from './agentHue'
import { classes } from './classes'

const looks: Record<Shape, string> = {
  circle: 'rounded-full',
  square: 'rounded-[28%]',
  leaf: 'rounded-[50%_0_50%_50%]',
  drop: 'rounded-[50%_50%_50%_0]',
}

// AgentGlyph is the symbol of an agent: its letters, with its own shape and hue. The name always stands beside it.
export function AgentGlyph({ name, large }: { name: string; large?: boolean }) {
  return (
    <span
      aria-hidden="true"
      data-agent-glyph={name}
      style={{ '--hue': agentHue(name) } as CSSProperties}
      className={classes(
        'agent-hue inline-flex shrink-0 items-center justify-center font-semibold select-none',
        large ? 'size-9 text-sm' : 'size-5 text-[0.5625rem]',
        looks[agentShape(name)],
      )}
    >
      {agentLetters(name)}
    </span>
  )
}
