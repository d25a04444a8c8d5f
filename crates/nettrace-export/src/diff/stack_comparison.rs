//! The differences between the stacks of two sides.

use hashbrown::HashMap;

use crate::diff::allowance::Allowance;
use crate::diff::call_tree::CallTree;
use crate::diff::comparison::{ComparisonOptions, MIN_EVENTS, MIN_SHARE, OUTSIDE_INTERVAL};
use crate::diff::estimate::{Estimate, EstimateOptions, Interval, UnitSums, estimate};
use crate::diff::holm;
use crate::diff::run::{KERNEL, Run};
use crate::diff::series::Cell;
use crate::diff::sides::{Noise, SideUnits};
use crate::diff::subject::{Basis, Kind, Statistic};
use crate::diff::test::Test;
use crate::diff::verdict::Verdict;
use crate::profile::frame_kind::FrameInfo;
use crate::profile::measure::Unit;

/// The stacks of two sides as one tree, with the differences of each stack with all that it called.
///
/// By default values are shares of a side's sum, so that neither the length of recordings nor the load
/// counts. A stack is a finding if the change is beyond noise, as for [methods](super::Comparison), over all
/// stacks of the tree.
///
/// ```
/// # use nettrace_export::diff::Run;
/// # use nettrace_export::nettrace::RelativeTime;
/// # use nettrace_export::{Format, Measure, StackProfileBuilder, Unit, WriteOptions};
/// # let run = |weight: u64| -> Result<Run, Box<dyn std::error::Error>> {
/// #     let mut builder = StackProfileBuilder::new(Measure::new("cpu", "samples", Unit::Nanoseconds));
/// #     for sample in 0..1000 {
/// #         let time = RelativeTime::from_nanos(sample * 1_000_000);
/// #         builder.add_sample(42, 7, time, 1_000_000, ["Shop!Program.Main()", "Shop!Cart.Load()"]);
/// #         builder.add_sample(42, 7, time, weight, ["Shop!Program.Main()", "Shop!Tax.Rate()"]);
/// #     }
/// #     let mut pprof = Vec::new();
/// #     nettrace_export::write(&builder.finish(), Format::Pprof, WriteOptions::new("a", "b"), &mut pprof)?;
/// #     Ok(Run::of_pprof(&pprof)?)
/// # };
/// # let base = [run(1_000_000)?, run(1_010_000)?, run(990_000)?, run(1_000_000)?];
/// # let new = [run(3_000_000)?, run(3_010_000)?, run(2_990_000)?, run(3_000_000)?];
/// use nettrace_export::diff::{ComparisonOptions, StackComparison};
///
/// let options = ComparisonOptions::default();
/// let comparison = StackComparison::new(&base, &new, &options, None).ok_or("no stacks")?;
/// let rate = comparison.nodes.iter().find(|node| node.name.ends_with("Tax.Rate()")).ok_or("a stack")?;
/// // Shares: from a half to three quarters.
/// assert!((rate.relative_change().ok_or("in both")? - 0.5).abs() < 0.05);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StackComparison {
    /// The amounts that stacks have: [`Kind::Cpu`], or [`Kind::Allocations`].
    pub kind: Kind,
    /// The unit of amounts.
    pub unit: Unit,
    /// The settings.
    pub options: ComparisonOptions,
    /// The source of the noise.
    pub noise: Noise,
    /// The number of differences that were tested. A stack and its single caller with the same weight count
    /// once.
    pub tested: usize,
    /// Callers precede their callees; the first node is the root of all stacks.
    pub nodes: Vec<StackNode>,
}

/// A stack of names, and what differs between the sides.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StackNode {
    /// The index of the caller; the root's own.
    pub parent: usize,
    /// The name of the leaf; empty for the root.
    pub name: String,
    /// The amount of the stack with all that it called, on the base and on the new side.
    pub amounts: [f64; 2],
    /// The same for each unit of the basis.
    pub values: [f64; 2],
    /// The interval of the difference of the values, with 95 % confidence; `None` if it was not tested.
    pub interval: Option<Interval>,
    /// The probability of such a difference by chance, adjusted for the number of tests.
    pub adjusted_probability: Option<f64>,
    /// The interval that the judgement used; all of a comparison hold together with the confidence that the
    /// error rate leaves.
    pub judged_interval: Option<Interval>,
    /// The judgement. If the noise is unknown, it is based on the difference alone.
    pub verdict: Verdict,
}

impl StackNode {
    /// The difference, relative to the base; `None` if the base lacks the stack.
    pub fn relative_change(&self) -> Option<f64> {
        let [base, new] = self.values;
        (base > 0.0).then(|| (new - base) / base)
    }
}

/// The settings of a comparison of stacks by default.
const BASIS: Basis = Basis::Share;

impl StackComparison {
    /// Compares the stacks of two sides; `None` if either lacks stacks, or has stacks of another kind.
    /// Without a `basis`, values are shares.
    pub fn new(base: &[Run], new: &[Run], options: &ComparisonOptions, basis: Option<Basis>) -> Option<Self> {
        let options = options.with_basis(basis.unwrap_or(BASIS));
        let kind = base.first()?.stack_kind;
        let has_stacks = |runs: &[Run]| runs.iter().any(|run| !run.stacks.is_empty());
        if !has_stacks(base) || !has_stacks(new) || base.iter().chain(new).any(|run| run.stack_kind != kind) {
            return None;
        }
        let (sides, noise) = SideUnits::of(base, new);
        let mut tree = MergedTree::default();
        let amounts = [0, 1].map(|side: usize| Amounts::new(&mut tree, &sides[side]));
        let whole = [Whole { amount: 0.0, base: 0.0 }; 2];
        let allowance = Allowance::new(&sides, noise, options.basis, options.allowance);
        let mut compared = Compared { sides: &sides, amounts: &amounts, kind, options, allowance, whole };
        compared.whole = [0, 1].map(|side: usize| Whole {
            amount: amounts[side].sum(0),
            base: (0..sides[side].stretches.len()).map(|unit| compared.base(side, unit)).sum(),
        });
        let mut nodes = Vec::with_capacity(tree.nodes.len());
        let mut tests = Vec::new();
        let mut details = Vec::new();
        for (index, (parent, name)) in tree.nodes.iter().enumerate() {
            let (node, test, limit) = compared.node(index, *parent, name);
            // The same numbers as the caller's are the same test.
            let of_parent = (index > 0 && compared.is_same(index, *parent)).then(|| tests[*parent]);
            tests.push(of_parent.unwrap_or(test.is_some().then_some(index)));
            details.push((test, limit));
            nodes.push(node);
        }
        let mut tested: Vec<usize> = tests.iter().flatten().copied().collect();
        tested.sort_unstable();
        tested.dedup();
        let member = |index: &usize| {
            let probability = nodes[*index].adjusted_probability.unwrap_or(1.0);
            holm::Member { probability, weight: 1.0 }
        };
        let members: Vec<_> = tested.iter().map(member).collect();
        let results = holm::adjust(&members, options.error_rate);
        for (index, node) in nodes.iter_mut().enumerate() {
            let place = tests[index].and_then(|test| tested.binary_search(&test).ok());
            let result = place.and_then(|place| results.get(place));
            node.adjusted_probability = result.map(|result| result.probability);
            if noise == Noise::Unknown {
                continue;
            }
            node.verdict = Verdict::Unknown;
            let (test, limit) = details[index];
            if let (Some(result), Some(test)) = (result, test) {
                node.judged_interval = Some(test.interval(result.level));
                node.verdict = test.judge(result.level, limit);
            }
        }
        let unit = base.iter().chain(new).find(|run| !run.stacks.is_empty()).map(|run| run.unit(kind));
        Some(Self { kind, unit: unit?, options, noise, tested: tested.len(), nodes })
    }

    /// The share of a side's sum that a node has.
    pub fn share(&self, node: &StackNode, is_new: bool) -> f64 {
        let side = usize::from(is_new);
        let all = self.nodes.first().map_or(0.0, |root| root.amounts[side]);
        if all > 0.0 { node.amounts[side] / all } else { 0.0 }
    }
}

/// The stacks of all runs.
#[derive(Debug)]
struct MergedTree {
    /// The caller and the name of each node.
    nodes: Vec<(usize, String)>,
    places: HashMap<(usize, String), usize>,
}

impl Default for MergedTree {
    fn default() -> Self {
        Self { nodes: vec![(0, String::new())], places: HashMap::new() }
    }
}

impl MergedTree {
    /// Adds the nodes of a tree, and returns the number of each.
    fn add(&mut self, tree: &CallTree) -> Vec<usize> {
        let mut numbers = Vec::with_capacity(tree.nodes().len());
        for node in tree.nodes() {
            let name = tree.name(node);
            let number = if name.is_empty() && numbers.is_empty() {
                0
            } else {
                let parent = numbers.get(node.parent as usize).copied().unwrap_or(0);
                let nodes = &mut self.nodes;
                *self.places.entry((parent, name.to_owned())).or_insert_with(|| {
                    nodes.push((parent, name.to_owned()));
                    nodes.len() - 1
                })
            };
            numbers.push(number);
        }
        numbers
    }
}

/// The amounts of the nodes of a side with all that they called, by unit.
struct Amounts {
    units: usize,
    /// By node and unit.
    all: Vec<f64>,
    /// The parts of these in the kernel.
    kernel: Vec<f64>,
}

impl Amounts {
    fn new(tree: &mut MergedTree, side: &SideUnits<'_>) -> Self {
        let numbers: Vec<_> = side.runs.iter().map(|run| tree.add(&run.stacks)).collect();
        let units = side.stretches.len();
        let mut all = vec![0.0; tree.nodes.len() * units];
        let mut kernel = all.clone();
        let is_kernel = |(_, name): &(usize, String)| FrameInfo::of_text(name).kind == KERNEL;
        let is_kernel: Vec<bool> = tree.nodes.iter().map(is_kernel).collect();
        for (unit, (run, stretch)) in side.stretches.iter().enumerate() {
            for (node, number) in side.runs[*run].stacks.nodes().iter().zip(&numbers[*run]) {
                let own = node.own_in(stretch);
                all[number * units + unit] += own;
                kernel[number * units + unit] += if is_kernel[*number] { own } else { 0.0 };
            }
        }
        for node in (1..tree.nodes.len()).rev() {
            let parent = tree.nodes[node].0;
            for unit in 0..units {
                all[parent * units + unit] += all[node * units + unit];
                kernel[parent * units + unit] += kernel[node * units + unit];
            }
        }
        Self { units, all, kernel }
    }

    /// By unit. The base side is read before the nodes of the new one are known.
    fn of(&self, node: usize) -> &[f64] {
        self.all.get(node * self.units..(node + 1) * self.units).unwrap_or_default()
    }

    fn of_kernel(&self, node: usize) -> &[f64] {
        self.kernel.get(node * self.units..(node + 1) * self.units).unwrap_or_default()
    }

    fn sum(&self, node: usize) -> f64 {
        self.of(node).iter().fold(0.0, |sum, amount| sum + amount)
    }
}

/// The two sides, and how they are compared.
struct Compared<'a> {
    sides: &'a [SideUnits<'a>; 2],
    amounts: &'a [Amounts; 2],
    kind: Kind,
    options: ComparisonOptions,
    allowance: Allowance,
    whole: [Whole; 2],
}

/// The sums of a side.
#[derive(Debug, Clone, Copy)]
struct Whole {
    amount: f64,
    /// That of the basis.
    base: f64,
}

impl Compared<'_> {
    /// Returns true if a node has the amounts of its caller in all units.
    #[allow(clippy::float_cmp, reason = "the same sums")]
    fn is_same(&self, node: usize, parent: usize) -> bool {
        self.amounts.iter().all(|side| side.of(node) == side.of(parent))
    }

    /// Returns a node, judged by its difference alone, its test, and the smallest difference of interest.
    fn node(&self, index: usize, parent: usize, name: &str) -> (StackNode, Option<Test>, f64) {
        let amounts = [0, 1].map(|side: usize| self.amounts[side].sum(index));
        let shares = [0, 1].map(|side: usize| match self.whole[side].amount {
            all if all > 0.0 => amounts[side] / all,
            _ => 0.0,
        });
        let is_large = shares[0].max(shares[1]) >= MIN_SHARE;
        // An error takes long, and there are many small stacks.
        let units = [0, 1].map(|side: usize| if is_large { self.units(side, index) } else { Vec::new() });
        let estimates = [0, 1].map(|side: usize| self.estimate(side, &units[side]));
        let value = |side: usize| match self.whole[side].base {
            all if all > 0.0 => amounts[side] / all,
            _ => 0.0,
        };
        let values = [value(0), value(1)];
        let test = self.allowance.test(self.kind, Statistic::Amount, estimates, &units);
        let count = estimates.iter().flatten().map(|estimate| estimate.count).sum::<f64>();
        let difference = values[1] - values[0];
        let value_of_all =
            self.whole.map(|whole| if whole.base > 0.0 { whole.amount / whole.base } else { 0.0 });
        let felt = MIN_SHARE * value_of_all[0].max(value_of_all[1]);
        let limit = felt.max(self.options.least_change * values[0]);
        let verdict = match (is_large && difference.abs() >= limit, difference > 0.0) {
            (false, _) => Verdict::Same,
            (true, true) => Verdict::Worse,
            (true, false) => Verdict::Better,
        };
        let node = StackNode {
            parent,
            name: name.to_owned(),
            amounts,
            values,
            interval: test.map(|test| test.interval(OUTSIDE_INTERVAL)),
            adjusted_probability: test.map(|test| test.probability),
            judged_interval: None,
            verdict,
        };
        (node, test.filter(|_| count >= MIN_EVENTS), limit)
    }

    fn units(&self, side: usize, node: usize) -> Vec<UnitSums> {
        let (units, kernel) = (self.amounts[side].of(node), self.amounts[side].of_kernel(node));
        let of_unit = |(unit, (run, _)): (usize, &(usize, std::ops::Range<usize>))| {
            let amount = units.get(unit).copied().unwrap_or(0.0);
            let typical = self.sides[side].runs[*run].stacks.typical;
            let kernel = kernel.get(unit).copied().unwrap_or(0.0);
            let (count, squares) = (amount / typical, amount * typical);
            let cell = Cell { amount, count, kernel, squares, ..Cell::default() };
            UnitSums { cell, base: self.base(side, unit) }
        };
        self.sides[side].stretches.iter().enumerate().map(of_unit).collect()
    }

    fn estimate(&self, side: usize, units: &[UnitSums]) -> Option<Estimate> {
        let typical = self.sides[side].runs.iter().map(|run| run.stacks.typical).fold(1.0, f64::max);
        estimate(
            units,
            &self.sides[side].draws,
            EstimateOptions {
                statistic: Statistic::Amount,
                is_sampled: true,
                typical_square: typical * typical,
                are_stretches: self.allowance.is_of_stretches(),
            },
        )
    }

    /// The amount of the basis in a unit.
    fn base(&self, side: usize, unit: usize) -> f64 {
        let (run, stretch) = &self.sides[side].stretches[unit];
        match self.options.basis {
            Basis::Share => self.amounts[side].of(0).get(unit).copied().unwrap_or(0.0),
            basis => self.sides[side].runs[*run].base(self.kind, Statistic::Amount, basis, stretch),
        }
    }
}
