// tap.mjs - steps [name, async function] one after another, as TAP
//
// A step that fails does not stop the others.  Ends the process, with status 0
// only if every step was right.
export async function runSteps(steps) {
  let failed = 0;
  console.log(`1..${steps.length}`);
  for (const [index, [name, step]] of steps.entries()) {
    try {
      await step();
      console.log(`ok ${index + 1} - ${name}`);
    } catch (error) {
      failed++;
      console.log(`not ok ${index + 1} - ${name}`);
      console.log(String(error.stack ?? error).replace(/^/gm, "# "));
    }
  }
  process.exit(failed === 0 ? 0 : 1);
}
