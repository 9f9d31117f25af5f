// tap.mjs - steps [name, async function] as TAP
//
// A step that fails does not stop the others.  Each ends the process, with
// status 0 only if every step was right.

async function outcome([name, step]) {
  try {
    await step();
    return { name };
  } catch (error) {
    return { name, error: String(error.stack ?? error) };
  }
}

// Prints how step number came out, and says whether it was right.
function print(number, { name, error }) {
  if (error === undefined) {
    console.log(`ok ${number} - ${name}`);
  } else {
    console.log(`not ok ${number} - ${name}`);
    console.log(error.replace(/^/gm, "# "));
  }
  return error === undefined;
}

// One after another.
export async function runSteps(steps) {
  let failed = 0;
  console.log(`1..${steps.length}`);
  for (const [index, step] of steps.entries())
    if (!print(index + 1, await outcome(step))) failed++;
  process.exit(failed === 0 ? 0 : 1);
}

// Groups [name, steps] beside each other, the steps of one one after another.
export async function runGroups(groups) {
  const done = await Promise.all(groups.map(async ([group, steps]) => {
    const outcomes = [];
    for (const [name, step] of steps)
      outcomes.push(await outcome([`${group}: ${name}`, step]));
    return outcomes;
  }));
  const all = done.flat();
  console.log(`1..${all.length}`);
  const right = all.map((one, index) => print(index + 1, one));
  process.exit(right.every(Boolean) ? 0 : 1);
}
