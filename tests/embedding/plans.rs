// Reads the number of a kernel, a limit and its shapes a line, and prints the plan of its module: runs, the first run, one amid and the last.

use std::io::{self, BufRead};

macro_rules! case {
    ($module:ident, [$($shape:ident),*], $words:expr) => {
        pub fn run(numbers: &mut dyn Iterator<Item = u64>) -> String {
            use super::$module as kernel;
            let limit = numbers.next().unwrap();
            let mut read = || {
                let rank = numbers.next().unwrap() as usize;
                (0..rank).map(|_| numbers.next().unwrap()).collect::<Vec<u64>>()
            };
            $(let $shape = read();)*
            let shapes = kernel::Shapes { $($shape: &$shape),* };
            let plan = match kernel::plan(&shapes, limit) {
                Ok(plan) => plan,
                Err(_) => return "refused".to_string(),
            };
            let mut found = vec![plan.runs];
            let words: fn(&kernel::Run) -> Vec<u8> = $words;
            if plan.runs > 0 {
                for index in [0, plan.runs / 2, plan.runs - 1] {
                    let run = plan.run(index).unwrap();
                    found.extend(run.offsets);
                    found.extend(run.sizes);
                    found.extend(words(&run).chunks(4).map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as u64));
                    found.extend(run.dispatches.iter().flatten().map(|count| *count as u64));
                }
            }
            found.iter().map(|number| number.to_string()).collect::<Vec<_>>().join(" ")
        }
    };
}

include!("cases.rs");

fn main() {
    for line in io::stdin().lock().lines() {
        let line = line.unwrap();
        let mut numbers = line.split_whitespace().map(|word| word.parse::<u64>().unwrap());
        let kernel = numbers.next().unwrap() as usize;
        println!("{}", CASES[kernel](&mut numbers));
    }
}
